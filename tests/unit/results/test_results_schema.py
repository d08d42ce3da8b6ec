"""Older files are upgraded, newer ones refused with one clear error that names the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from results.errors import ResultError
from results.schema import SCHEMA_VERSION, UPGRADES, CellRecord, Manifest, dump_record, read_record, upgrade
from results.tables import GOODPUT, TABLES, from_parquet, to_parquet


def write(tmp_path: Path, document: object) -> Path:
    file = tmp_path / "manifest.json"
    file.write_text(document if isinstance(document, str) else json.dumps(document))
    return file


def test_a_document_survives_writing_and_reading_with_keys_of_later_additions(tmp_path: Path) -> None:
    manifest = Manifest.model_validate({"id": "x", "created": "2025", "name": "x", "colour": "blue"})
    again = read_record(Manifest, write(tmp_path, dump_record(manifest)))
    assert again == manifest
    assert json.loads(dump_record(again))["colour"] == "blue"
    assert json.loads(dump_record(again))["schema"] == SCHEMA_VERSION


def test_a_newer_version_is_refused_and_both_versions_named(tmp_path: Path) -> None:
    file = write(tmp_path, {"schema": SCHEMA_VERSION + 1, "id": "x", "created": "2025", "name": "x"})
    with pytest.raises(ResultError) as caught:
        read_record(Manifest, file)
    assert str(caught.value) == (
        f"{file}: written by a newer version (schema {SCHEMA_VERSION + 1}); this one reads up to schema "
        f"{SCHEMA_VERSION} (update the testbed to read it)"
    )


def test_an_older_version_is_upgraded_through_every_step_between(tmp_path: Path) -> None:
    def one_to_two(document: dict[str, Any]) -> dict[str, Any]:
        return {**document, "rate_bps": document["rate_kbps"] * 1000}

    def two_to_three(document: dict[str, Any]) -> dict[str, Any]:
        return {**document, "rates_bps": [document["rate_bps"]]}

    steps = (one_to_two, two_to_three)
    assert upgrade({"schema": 1, "rate_kbps": 5}, tmp_path, steps=steps)["rates_bps"] == [5000]
    assert upgrade({"schema": 2, "rate_bps": 5}, tmp_path, steps=steps)["rates_bps"] == [5]
    assert upgrade({"schema": 3}, tmp_path, steps=steps) == {"schema": 3}


def test_there_is_one_upgrade_step_for_each_older_version() -> None:
    assert len(UPGRADES) == SCHEMA_VERSION - 1


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        ("{", "not valid JSON"),
        ("[]", "expected a JSON object"),
        ({"id": "x"}, "no valid 'schema' number"),
        ({"schema": True}, "no valid 'schema' number"),
        ({"schema": 1, "created": "2025", "name": "x"}, "damaged: id: Field required"),
        ({"schema": 1, "id": "x", "created": "2025", "name": "x", "status": "asleep"}, "damaged: status"),
    ],
)
def test_a_damaged_document_is_one_error_with_the_file_and_the_key(
    tmp_path: Path, document: object, complaint: str
) -> None:
    file = write(tmp_path, document)
    with pytest.raises(ResultError, match=complaint) as caught:
        read_record(Manifest, file)
    assert caught.value.file == file


def test_a_missing_document_is_named(tmp_path: Path) -> None:
    with pytest.raises(ResultError, match=r"cell\.json: missing"):
        read_record(CellRecord, tmp_path / "cell.json")


def test_bins_wider_than_fifty_milliseconds_are_refused() -> None:
    with pytest.raises(ValueError, match="bin_s"):
        CellRecord(id="x", transport="mrc", bin_s=0.1)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_an_empty_table_keeps_its_columns(table: Any, tmp_path: Path) -> None:
    file = tmp_path / table.file_name
    file.write_bytes(to_parquet(table, []))
    frame = from_parquet(table, file)
    assert list(frame.columns) == [column.name for column in table.columns] == list(table.empty().columns)
    assert len(frame) == 0


def test_a_damaged_table_is_one_error_with_its_file(tmp_path: Path) -> None:
    file = tmp_path / "goodput.parquet"
    file.write_bytes(to_parquet(GOODPUT, [])[:-20])
    with pytest.raises(ResultError, match=r"goodput\.parquet: damaged"):
        from_parquet(GOODPUT, file)
