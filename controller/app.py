"""The controller application: turns the framework's events into calls of ``Control``, and its calls into messages.

Nothing is decided here. All handlers and timers run on the application's event thread, so ``Control`` needs no locks.
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable
from typing import Any

from controller import openflow
from controller.control import GENERATIONS, Control, Emit
from controller.framework import Framework
from controller.program import FlowRecord, GroupRecord
from topologies.graph import Fabric

Handler = Callable[[Any, Any], None]


class SwitchChannel:
    """A connected switch as ``Control`` sees it."""

    def __init__(self, datapath: Any) -> None:
        self.datapath = datapath

    def put_group(self, group: GroupRecord) -> None:
        """See Channel."""
        self._send(openflow.put_group(self.datapath, group))

    def put_flow(self, flow: FlowRecord, generation: int) -> None:
        """See Channel."""
        self._send(openflow.put_flow(self.datapath, flow, generation))

    def drop_flow(self, flow: FlowRecord) -> None:
        """See Channel."""
        self._send(openflow.drop_flow(self.datapath, flow))

    def drop_group(self, group_id: int) -> None:
        """See Channel."""
        self._send(openflow.drop_group(self.datapath, group_id))

    def purge_flows(self, generation: int) -> None:
        """See Channel."""
        for message in openflow.purge_flows(self.datapath, generation):
            self._send(message)

    def ask_groups(self) -> None:
        """See Channel."""
        self._send(openflow.ask_groups(self.datapath))

    def ask_ports(self) -> None:
        """See Channel."""
        self._send(openflow.ask_ports(self.datapath))

    def barrier(self) -> int:
        """See Channel."""
        return self._send(openflow.barrier(self.datapath))

    def _send(self, message: Any) -> int:
        self.datapath.send_msg(message)
        return int(message.xid)


def run(
    framework: Framework,
    fabric: Fabric,
    mode: str,
    *,
    host: str,
    port: int,
    seed: int | None,
    convergence_s: float,
    emit: Emit,
    failed: Callable[[str], None],
) -> None:
    """Starts the application and returns; it then runs on threads of the framework's.

    Args:
        host, port: where to listen for switches; port 0 takes a free one, named in the ``listening`` event.
        failed: called with the reason when listening is impossible.
    """
    manager = framework.app_manager.AppManager.get_instance()
    # The application registers with the listener, so the listener has to exist first; it starts last.
    listener = manager.instantiate(_listener_class(framework), host=host, port=port, emit=emit, failed=failed)
    app = manager.instantiate(
        _app_class(framework), fabric=fabric, mode=mode, seed=seed, convergence_s=convergence_s, emit=emit
    )
    app.start()
    listener.start()


def _listener_class(framework: Framework) -> Any:
    """The framework's own OpenFlow handshake, with a server that says when it listens."""
    hub = framework.hub
    base: Any = framework.openflow_handler.OFPHandler
    connection = _connection_class(framework)

    def serve(accepted: Any, address: Any) -> None:
        with contextlib.closing(connection(accepted, address)) as datapath:
            datapath.serve()

    class Listener(base):  # type: ignore[misc]
        """Accepts switches."""

        OFP_VERSIONS = (framework.openflow15.OFP_VERSION,)

        def __init__(self, *, host: str, port: int, emit: Emit, failed: Callable[[str], None]) -> None:
            super().__init__()
            self._address = (host, port)
            self._emit = emit
            self._failed = failed

        def start(self) -> Any:
            """Listens, in place of the framework's own server."""
            framework.app_base.start(self)
            try:
                server = hub.StreamServer(self._address, serve)
            except OSError as error:
                self._failed(f"cannot listen on {self._address[0]}:{self._address[1]}: {error.strerror}")
                return None
            host, port = server.server.getsockname()[:2]
            detail = {"framework": framework.name, "version": framework.version, "host": host, "port": port}
            self._emit("listening", f"{framework.name} {framework.version}", detail)
            return hub.spawn(server.serve_forever)

        def _hello_failed(self, datapath: Any, error_desc: str) -> None:
            self._emit("error", "unknown switch", f"no common OpenFlow version (ours is 1.5, 0x6): {error_desc}")
            super()._hello_failed(datapath, error_desc)

    return Listener


def _connection_class(framework: Framework) -> Any:
    """The framework's connection, which with native threads never tells that it has ended.

    After its receiving thread has ended it waits for its sending thread, which waits for something to send (os-ken
    4.2.2), and the state change that ``switch_down`` is made of would come after that.
    """
    base: Any = framework.connection.Datapath

    class Connection(base):  # type: ignore[misc]
        """A connection to a switch."""

        def _recv_loop(self) -> None:
            try:
                super()._recv_loop()
            finally:
                self.close()
                self.send(b"", close_socket=True)

    return Connection


def _app_class(framework: Framework) -> Any:
    events = framework.events
    app_base: Any = framework.app_base
    event_base: Any = framework.event_base
    on: Callable[[Any, Any], Callable[[Handler], Handler]] = framework.dispatchers.set_ev_cls
    main, dead = framework.dispatchers.MAIN_DISPATCHER, framework.dispatchers.DEAD_DISPATCHER
    config, handshake = framework.dispatchers.CONFIG_DISPATCHER, framework.dispatchers.HANDSHAKE_DISPATCHER

    class Due(event_base):  # type: ignore[misc]
        """A timer has fired."""

        def __init__(self, callback: Callable[[], None]) -> None:
            super().__init__()
            self.callback = callback

    def reported(handler: Handler) -> Handler:
        """The framework logs what a handler raises and goes on; the parent process must hear of it."""

        @functools.wraps(handler)
        def call(self: Any, event: Any) -> None:
            try:
                handler(self, event)
            except Exception as error:
                self.emit("error", "controller", f"{handler.__name__}: {type(error).__name__}: {error}")
                raise

        return call

    class FabricApp(app_base):  # type: ignore[misc]
        """Keeps the switches of one fabric programmed."""

        OFP_VERSIONS = (framework.openflow15.OFP_VERSION,)

        def __init__(self, *, fabric: Fabric, mode: str, seed: int | None, convergence_s: float, emit: Emit) -> None:
            super().__init__()
            self.emit = emit
            self._channels: dict[int, SwitchChannel] = {}
            self._control = Control(
                fabric,
                mode,
                seed=seed,
                convergence_s=convergence_s,
                # Differs from that of an earlier controller whose flows the switches may still hold.
                first_generation=int(time.time() * 10) % GENERATIONS,
                emit=emit,
                schedule=self._schedule,
            )
            self.register_handler(Due, self._due)

        def _schedule(self, delay_s: float, callback: Callable[[], None]) -> None:
            framework.hub.spawn_after(delay_s, self.send_event, self.name, Due(callback))

        @reported
        def _due(self, event: Any) -> None:
            event.callback()

        @on(events.EventOFPStateChange, [main, dead])
        @reported
        def _state_changed(self, event: Any) -> None:
            datapath = event.datapath
            if event.state == main:
                channel = SwitchChannel(datapath)
                self._channels[datapath.id] = channel
                self._control.connected(datapath.id, channel)
            elif datapath.id in self._channels and self._channels[datapath.id].datapath is datapath:
                self._control.disconnected(datapath.id, self._channels.pop(datapath.id))

        @on(events.EventOFPPortDescStatsReply, main)
        @reported
        def _ports(self, event: Any) -> None:
            datapath = event.msg.datapath
            up = {port.port_no: openflow.port_is_up(datapath.ofproto, port) for port in event.msg.body}
            self._control.ports_listed(datapath.id, up)

        @on(events.EventOFPPortStatus, main)
        @reported
        def _port(self, event: Any) -> None:
            message, ofproto = event.msg, event.msg.datapath.ofproto
            up = message.reason != ofproto.OFPPR_DELETE and openflow.port_is_up(ofproto, message.desc)
            self._control.port_changed(message.datapath.id, message.desc.port_no, up)

        @on(events.EventOFPBarrierReply, main)
        @reported
        def _barrier(self, event: Any) -> None:
            self._control.acknowledged(event.msg.datapath.id, event.msg.xid)

        @on(events.EventOFPGroupStatsReply, main)
        @reported
        def _groups(self, event: Any) -> None:
            self._control.groups_listed(event.msg.datapath.id, frozenset(group.group_id for group in event.msg.body))

        @on(events.EventOFPErrorMsg, [handshake, config, main])
        @reported
        def _refused(self, event: Any) -> None:
            datapath = event.msg.datapath
            self._control.refused(datapath.id, openflow.error_text(datapath.ofproto, event.msg))

    return FabricApp
