"""Finds the command, imports its file alone, runs it, and turns errors into the exit codes of ``console.py``.

A command is a file ``cli/<module>.py`` with a Typer function named ``command`` or, for a group of commands
(``lab start``), a ``typer.Typer`` named ``app``. A new one needs its file and one line in ``COMMANDS``.
Nothing of a command is imported before it is asked for: ``--help`` is quick, and ``validate`` needs no Mininet.
"""

from __future__ import annotations

import difflib
import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cli.console import BAD_INPUT, DONE, FAILED, MACHINE_LACKS, ROOT, CommandError, require_mininet, require_root, say

_OWN_ROOMS = ("cli", "experiments", "testbed", "controller", "topologies", "mrc_agent", "results")


class Command(NamedTuple):
    """One line of the table.

    Attributes:
        help: for the list of commands; the command's own ``--help`` comes from its docstring.
        network: it makes a network: asks for root and Mininet before its file is imported.
        module: the file in ``cli/``; the command's name where empty.
    """

    help: str
    network: bool = False
    module: str = ""


COMMANDS = {
    "quickstart": Command("compare MRC with TCP over ECMP under a link failure, in under 3 minutes", network=True),
    "run": Command("run an experiment", network=True),
    "sweep": Command("run the cross product of an experiment's sweep block", network=True),
    "report": Command("draw plots, tables and a page from the results of runs"),
    "compare": Command("put several runs side by side"),
    "validate": Command("check YAML files and show all mistakes at once"),
    "plan": Command("show what an experiment would do, without doing it"),
    "path": Command("show hop by hop where packets between two hosts go"),
    "list": Command("list the runs, newest first"),
    "show": Command("show one run's comparison table"),
    "shell": Command("bring the network up and give a prompt", network=True),
    "doctor": Command("show what this machine can and cannot do, and the command that fixes it"),
    "lab": Command("teaching labs: list, start, check"),
    "schema": Command("write the JSON schemas of the YAML files, for editors"),
    "clean": Command("remove leftovers of runs (there should be none)"),
    "test": Command("run the test suite (--unit: the part that needs no root)"),
}

# Errors that the rooms raise for the user to read. Named, not imported: no room is loaded for the sake of this table.
USER_ERRORS = {
    "topologies.errors.InputErrors": BAD_INPUT,
    "topologies.quantities.QuantityError": BAD_INPUT,
    "testbed.errors.MachineLacks": MACHINE_LACKS,
    "testbed.errors.TestbedError": FAILED,
    "testbed.sandbox.SandboxError": FAILED,
    "controller.framework.FrameworkError": MACHINE_LACKS,
    "controller.process.ControllerError": FAILED,
    "results.errors.ResultError": FAILED,
}


def available() -> dict[str, Command]:
    """The commands of the table whose file is there, in the table's order."""
    here = Path(__file__).parent
    return {name: line for name, line in COMMANDS.items() if (here / f"{line.module or name}.py").is_file()}


def usage() -> str:
    """What ``run.py --help`` prints."""
    commands = available()
    width = max(map(len, commands))
    lines = [f"  {'*' if line.network else ' '} {name:<{width}}  {line.help}" for name, line in commands.items()]
    return "\n".join(
        [
            "A Mininet testbed for Multipath Reliable Connection (MRC).",
            "",
            "Usage: ./run.py COMMAND [OPTIONS] [ARGUMENTS]     (commands with * need root: sudo ./run.py ...)",
            "",
            *lines,
            "",
            "./run.py COMMAND --help tells more about one of them. Start with: sudo ./run.py quickstart",
        ]
    )


def version() -> str:
    """The version in ``pyproject.toml``, the one place that has it."""
    for line in (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines():
        if line.startswith("version"):
            return line.partition("=")[2].strip().strip('"')
    return "unknown"


def main(arguments: Sequence[str]) -> int:
    """Runs one command line (without the program's name) and returns its exit code."""
    try:
        result = _run(*(arguments or ["--help"]))
        sys.stdout.flush()
        return result
    except KeyboardInterrupt:
        say("interrupted")
        return FAILED
    except BrokenPipeError:  # ``run.py list | head``: the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # so that the flush at exit does not fail once more
        return DONE
    except Exception as error:
        code = exit_code_of(error)
        if code is not None:
            # A mistake in a file starts with its place, file:line:, which terminals and editors make a link of.
            say(str(error) if type(error).__name__ == "InputErrors" else f"error: {error}")
            return code
        traceback.print_exc()
        say("error: this is a mistake in the testbed, not in your input; please report it with the lines above")
        return FAILED


def exit_code_of(error: Exception) -> int | None:
    """The exit code for an error that is meant for the user; None for any other."""
    if isinstance(error, CommandError):
        return error.code
    for kind in type(error).__mro__:
        code = USER_ERRORS.get(f"{kind.__module__}.{kind.__qualname__}")
        if code is not None:
            return code
    return None


def _run(name: str, *arguments: str) -> int:
    if name in ("--help", "-h", "help"):
        print(usage())
        return DONE
    if name == "--version":
        print(f"mrc-testbed {version()}")
        return DONE
    commands = available()
    if name not in commands:
        close = difflib.get_close_matches(name, commands, n=1)
        hint = f"did you mean {close[0]}?" if close else "./run.py --help lists them"
        raise CommandError(f"there is no command {name!r} ({hint})", BAD_INPUT)
    line = commands[name]
    if line.network and "--help" not in arguments:
        require_root(" ".join([name, *arguments]), f"{name} makes a network")
        require_mininet()
    try:
        command = _click_command(name, f"cli.{line.module or name}")
    except ModuleNotFoundError as error:
        if error.name and error.name.partition(".")[0] in _OWN_ROOMS:
            raise
        missing = f"this Python ({sys.executable}) has no {error.name}"
        raise CommandError(f"{missing}; start with ./run.py, or type: sudo ./setup.sh", MACHINE_LACKS) from error
    try:
        command.main(args=[*arguments], prog_name=f"run.py {name}")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else DONE if ended.code is None else FAILED
    return DONE


def _click_command(name: str, module_name: str) -> Any:
    """Imports a command's file. Without Typer's own tracebacks and shell-completion options."""
    import typer

    module = importlib.import_module(module_name)
    app = getattr(module, "app", None)
    if app is None:
        app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
        app.command(name=name)(module.command)
    return typer.main.get_command(app)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
