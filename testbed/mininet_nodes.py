"""Mininet's classes, fitted to a graph whose interfaces are made in one batch.

Mininet starts the nodes' shells and keeps the books (its CLI and API work as ever); the interfaces, their addresses
and rates, and the bridges are made by `network.py` for the whole fabric at once, which is many times faster than one
shell command each.
"""

from __future__ import annotations

from typing import Any

from mininet.link import Intf, Link
from mininet.net import Mininet
from mininet.node import Host, OVSSwitch


class FabricIntf(Intf):  # type: ignore[misc]
    """An interface that exists already, with its addresses."""

    def config(self, **_params: Any) -> dict[str, Any]:
        """Nothing: `network.py` has configured it."""
        return {}


class FabricLink(Link):  # type: ignore[misc]
    """A veth pair that exists already."""

    @classmethod
    def makeIntfPair(cls, *_arguments: Any, **_keywords: Any) -> None:
        """Nothing: `network.py` has made it."""


class FabricHost(Host):  # type: ignore[misc]
    """A host in a network namespace of its own."""


class FabricSwitch(OVSSwitch):  # type: ignore[misc]
    """An Open vSwitch bridge, with daemons of its own, that `network.py` creates."""

    @classmethod
    def setup(cls) -> None:
        """Nothing: Mininet would ask the machine's Open vSwitch, which a run never touches."""

    def start(self, _controllers: Any) -> None:
        """Nothing: `network.py` has created it."""


class FabricNet(Mininet):  # type: ignore[misc]
    """Mininet without its changes to the machine: it would raise `fs.file-max` and other settings for good."""

    def __init__(self, **keywords: Any) -> None:
        Mininet.inited = True  # Mininet.init() is what would change them
        super().__init__(**keywords)
