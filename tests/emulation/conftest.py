"""Emulation tests need root, Open vSwitch and Mininet; without them they are skipped, and say what is missing."""

import importlib.util
import os
import shutil

import pytest


def _missing():
    if os.geteuid() != 0:
        return "root"
    if shutil.which("ovs-vswitchd") is None:
        return "Open vSwitch"
    if importlib.util.find_spec("mininet") is None:
        return "Mininet in this Python"
    return None


def pytest_collection_modifyitems(items):
    missing = _missing()
    for item in items:
        item.add_marker(pytest.mark.emulation)
        if missing:
            item.add_marker(pytest.mark.skip(reason=f"this machine lacks {missing}"))
