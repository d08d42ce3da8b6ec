"""Imports point one way, and only some files may know some libraries."""

from __future__ import annotations

import pytest

from tests.unit.repository import rooms

KNOWS_THE_FRAMEWORK = {"controller/framework.py", "controller/openflow.py", "controller/app.py"}
DATA_PATH = ("mrc_agent", "testbed", "experiments")


@pytest.mark.parametrize("room", rooms.MAY_IMPORT)
def test_a_room_imports_only_the_rooms_below_it(room: str) -> None:
    others = rooms.MAY_IMPORT.keys() - {room} - rooms.MAY_IMPORT[room]
    wrong = {rooms.shown(path): rooms.imported_roots(path) & others for path in rooms.files_of(room)}
    assert not {path: names for path, names in wrong.items() if names}


def test_no_import_is_relative() -> None:
    wrong = [rooms.shown(path) for path in rooms.all_files() if "" in rooms.imported_roots(path)]
    assert not wrong


def test_only_three_files_of_the_controller_know_its_framework() -> None:
    found = {rooms.shown(path) for path in rooms.all_files() if rooms.imported_roots(path) & {"os_ken", "ryu"}}
    assert found <= KNOWS_THE_FRAMEWORK


@pytest.mark.parametrize("room", DATA_PATH)
def test_scapy_is_not_on_the_data_path(room: str) -> None:
    assert not [rooms.shown(path) for path in rooms.files_of(room) if "scapy" in rooms.imported_roots(path)]


def test_only_the_testbed_knows_mininet() -> None:
    found = {rooms.shown(path) for path in rooms.all_files() if "mininet" in rooms.imported_roots(path)}
    assert not [name for name in found if not name.startswith("testbed/")]


@pytest.mark.parametrize(
    ("source", "module"),
    [
        ("import testbed.network", "testbed.network"),
        ("from testbed import network", "testbed.network"),
        ("def late():\n    from scapy.all import IPv6", "scapy.all.IPv6"),
        ("if TYPE_CHECKING:\n    import testbed", "testbed"),
        ("importlib.import_module('os_ken.base')", "os_ken.base"),
        ("__import__('ryu')", "ryu"),
        ("from ..testbed import network", "..testbed.network"),
    ],
)
def test_every_way_to_import_is_seen(source: str, module: str) -> None:
    assert module in rooms.imported_modules(source)
