"""Numbers with a physical meaning carry their unit: ``20 Mbit/s``, ``2 ms``, ``64 KB``, ``5 %``, ``1.5 bdp``.

The annotated types (``Rate``, ``Duration``, ``Size``, ``Share``, ``QueueSize``) are fields of pydantic models. In the
model they hold plain numbers in base units (bit/s as int, seconds as float, bytes as int, a share in [0, 1] as float);
in YAML, in JSON and in messages they are text. A bare number is an error with a hint, because ``100`` has meant both
bit/s and Mbit/s to the same tool before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from topologies.errors import one_of, problem

_NUMBER = r"\d{1,15}(?:\.\d{1,24})?"
_FINEST = Decimal(1).scaleb(-24)
_AMOUNT = re.compile(rf"\s*({_NUMBER})\s*(\S*)\s*")
_NEGATIVE = re.compile(r"\s*-\s*\d")


class QuantityError(ValueError):
    """The text is not such a quantity. ``str()`` says why; ``hint`` says what to write instead, or is empty."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True)
class Dimension:
    """A kind of quantity.

    Attributes:
        noun: with article, for messages (``a rate``).
        units: size of each unit in base units, smallest first.
        usual: the unit that a hint proposes for a bare number.
        slips: other spellings, lower case unless exact, and the unit that was probably meant.
    """

    noun: str
    units: Mapping[str, Decimal]
    usual: str
    slips: Mapping[str, str]

    @property
    def pattern(self) -> str:
        """Regular expression for JSON schemas."""
        return rf"^\s*{_NUMBER}\s*({'|'.join(re.escape(unit) for unit in self.units)})\s*$"

    def parse(self, value: object) -> Decimal:
        """The amount in base units. Raises QuantityError."""
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise QuantityError(f"must be {self.noun}", f"for example `20 {self.usual}`")
        if not isinstance(value, str):
            if value < 0:
                raise QuantityError("must not be negative")
            raise QuantityError(f"{self.noun} needs a unit", self._guess(value) if value < 10**15 else "")
        match = _AMOUNT.fullmatch(value)
        if match is None:
            if _NEGATIVE.match(value):
                raise QuantityError("must not be negative")
            raise QuantityError(f"{_quoted(value)} is not {self.noun}", f"for example `20 {self.usual}`")
        number, unit = match.groups()
        if not unit:
            raise QuantityError(f"{self.noun} needs a unit", self._guess(Decimal(number)))
        if unit in self.units:
            return Decimal(number) * self.units[unit]
        if self is RATE and unit.endswith("B/s"):
            raise QuantityError(f"{_quoted(unit)} is not a unit of rate", "rates are in bits, 1 MB/s is `8 Mbit/s`")
        meant = self.slips.get(unit) or self.slips.get(unit.lower())
        meant = meant or next((known for known in self.units if known.lower() == unit.lower()), None)
        hint = f"`{number} {meant}`?" if meant else f"units: {one_of(self.units)}"
        raise QuantityError(f"{_quoted(unit)} is not a unit of {self.noun.split(' ', 1)[1]}", hint)

    def _guess(self, number: int | float | Decimal) -> str:
        """What a bare number may have meant."""
        if self is SHARE and number < 1:
            return f"`{float(number) * 100:g} %` or `{number} %`?"
        if self is SIZE and number >= 1000:
            return f"`{number} B`?"
        return f"`{number} {self.usual}`?"

    def format(self, amount: Decimal) -> str:
        """The amount in the largest unit that gives at least 1."""
        if amount == 0:
            return f"0 {self.usual}"
        fitting = [unit for unit, size in self.units.items() if amount >= size] or [next(iter(self.units))]
        unit = max(fitting, key=lambda name: self.units[name])
        number = amount / self.units[unit]
        if number < _FINEST * 10**16:
            number = number.quantize(_FINEST)
        scaled = f"{number:f}"
        return f"{scaled.rstrip('0').rstrip('.') if '.' in scaled else scaled} {unit}"


def _quoted(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:37]}...")


def _powers(base: int, units: str) -> dict[str, Decimal]:
    return {unit: Decimal(base) ** exponent for exponent, unit in enumerate(units.split())}


RATE = Dimension(
    "a rate",
    _powers(1000, "bit/s kbit/s Mbit/s Gbit/s"),
    "Mbit/s",
    {
        **dict.fromkeys(("b/s", "bps", "bit", "bits/s"), "bit/s"),
        **dict.fromkeys(("k", "kb/s", "kbps", "kbit", "kbits/s"), "kbit/s"),
        **dict.fromkeys(("m", "mb/s", "mbps", "mbit", "mbits/s"), "Mbit/s"),
        **dict.fromkeys(("g", "gb/s", "gbps", "gbit", "gbits/s"), "Gbit/s"),
    },
)
DURATION = Dimension(
    "a time",
    {"us": Decimal("0.000001"), "ms": Decimal("0.001"), "s": Decimal(1)},
    "ms",
    {
        **dict.fromkeys(("µs", "μs", "usec", "microseconds"), "us"),
        **dict.fromkeys(("msec", "millisecond", "milliseconds"), "ms"),
        **dict.fromkeys(("sec", "secs", "second", "seconds"), "s"),
    },
)
SIZE = Dimension(
    "a size",
    {
        **_powers(1000, "B KB MB GB"),
        **{unit: size for unit, size in _powers(1024, "B KiB MiB GiB").items() if unit != "B"},
    },
    "KB",
    {"byte": "B", "bytes": "B", "k": "KB", "m": "MB", "g": "GB", "ki": "KiB", "mi": "MiB", "gi": "GiB"},
)
SHARE = Dimension("a share", {"%": Decimal("0.01")}, "%", {"percent": "%"})
BDP = Dimension("a multiple of the bdp", {"bdp": Decimal(1)}, "bdp", {"bdps": "bdp"})

_DECIMAL_SIZES = Dimension(SIZE.noun, _powers(1000, "B KB MB GB"), SIZE.usual, SIZE.slips)


def parse_rate(value: object) -> int:
    """Bits per second of ``20 Mbit/s``. Raises QuantityError."""
    return _whole(RATE.parse(value), "bit/s")


def parse_duration(value: object) -> float:
    """Seconds of ``2 ms``. Raises QuantityError."""
    return float(DURATION.parse(value))


def parse_size(value: object) -> int:
    """Bytes of ``64 KB`` (KB, MB, GB are powers of 1000; KiB, MiB, GiB of 1024). Raises QuantityError."""
    return _whole(SIZE.parse(value), "B")


def parse_share(value: object) -> float:
    """A number in [0, 1] of ``20 %``. Raises QuantityError."""
    share = SHARE.parse(value)
    if share > 1:
        raise QuantityError("must be at most 100 %")
    return float(share)


@dataclass(frozen=True)
class Queue:
    """A queue's size: a number of bytes, or a multiple of the link's bandwidth-delay product. One of the two is set."""

    size_bytes: int | None = None
    bdp: float | None = None

    def bytes_for(self, bdp_bytes: float) -> float:
        """The size in bytes on a link whose bandwidth-delay product is ``bdp_bytes``."""
        return self.size_bytes if self.size_bytes is not None else (self.bdp or 0.0) * bdp_bytes


def parse_queue(value: object) -> Queue:
    """The queue of ``64 KB`` or ``1.5 bdp``. Raises QuantityError."""
    if isinstance(value, Queue):
        return value
    if isinstance(value, str) and re.search(r"bdps?\s*$", value, re.IGNORECASE):
        return Queue(bdp=float(BDP.parse(value)))
    try:
        return Queue(size_bytes=parse_size(value))
    except QuantityError as error:
        if "unit" not in str(error):
            raise
        hint = (
            error.hint.replace("`?", "` or `1 bdp`?") if "?" in error.hint else f"units: {one_of([*SIZE.units, 'bdp'])}"
        )
        raise QuantityError(str(error), hint) from None


def _whole(amount: Decimal, unit: str) -> int:
    if amount != int(amount):
        raise QuantityError(f"must be a whole number of {unit}")
    return int(amount)


def _exact(value: float) -> Decimal:
    return Decimal(value) if isinstance(value, int) else Decimal(repr(float(value)))


def format_rate(rate_bps: float) -> str:
    """``20 Mbit/s``."""
    return RATE.format(_exact(rate_bps))


def format_duration(duration_s: float) -> str:
    """``2 ms``."""
    return DURATION.format(_exact(duration_s))


def format_size(size_bytes: float) -> str:
    """``64 KB``; up to 10 KB an odd size stays in bytes (``4200 B``), as packets are spoken of."""
    if size_bytes < 10_000 and size_bytes % 1000:
        return f"{_exact(size_bytes):f} B"
    return _DECIMAL_SIZES.format(_exact(size_bytes))


def format_share(share: float) -> str:
    """``20 %``."""
    return SHARE.format(_exact(share))


def format_queue(queue: Queue) -> str:
    """``64 KB`` or ``1.5 bdp``."""
    return format_size(queue.size_bytes) if queue.size_bytes is not None else BDP.format(_exact(queue.bdp or 0.0))


@dataclass(frozen=True)
class Quantity:
    """Annotation that makes pydantic read text with a unit and write it back.

    Attributes:
        parse: text -> number in base units; raises QuantityError.
        format: number in base units -> text.
        pattern: regular expression for the JSON schema.
    """

    parse: Callable[[object], Any]
    format: Callable[[Any], str]
    pattern: str
    example: str

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        def read(value: object) -> object:
            try:
                return self.parse(value)
            except QuantityError as error:
                raise problem(str(error), error.hint) from None

        write = core_schema.plain_serializer_function_ser_schema(self.format, when_used="json")
        return core_schema.no_info_plain_validator_function(read, serialization=write)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"type": "string", "pattern": self.pattern, "examples": [self.example]}


Rate = Annotated[int, Quantity(parse_rate, format_rate, RATE.pattern, "20 Mbit/s")]
Duration = Annotated[float, Quantity(parse_duration, format_duration, DURATION.pattern, "2 ms")]
Size = Annotated[int, Quantity(parse_size, format_size, SIZE.pattern, "64 KB")]
Share = Annotated[float, Quantity(parse_share, format_share, SHARE.pattern, "20 %")]
Probability = Share
QueueSize = Annotated[Queue, Quantity(parse_queue, format_queue, f"{SIZE.pattern}|{BDP.pattern}", "1.5 bdp")]

Number = TypeVar("Number", int, float)


def between(low: Number, high: Number, form: Callable[[Number], str], *, below: bool = False) -> AfterValidator:
    """Annotation that limits a quantity to [low, high] ([low, high) with ``below``), both in base units."""

    def check(value: Number) -> Number:
        if value < low:
            raise problem(f"must be at least {form(low)}")
        if value > high or (below and value == high):
            raise problem(f"must be {'below' if below else 'at most'} {form(high)}")
        return value

    return AfterValidator(check)
