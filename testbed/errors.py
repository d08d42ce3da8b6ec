"""What can go wrong while a network is made real. Each message says what to do, none needs a traceback."""

from __future__ import annotations


class TestbedError(RuntimeError):
    """The network could not be built or has broken."""

    __test__ = False


class MachineLacks(TestbedError):
    """This machine lacks something the run needs. Attribute ``fix``: the command or setting that helps."""

    def __init__(self, message: str, fix: str = "") -> None:
        super().__init__(f"{message} ({fix})" if fix else message)
        self.fix = fix


class CommandError(TestbedError):
    """A command of the system failed; its exit code and standard error are in the message."""
