"""Runs inside a sandbox: builds a network and does what its argument says; tells what it found as JSON lines."""

import json
import re
import subprocess
import sys
import time
from pathlib import Path

from controller.process import ControllerProcess
from testbed import links
from testbed.errors import TestbedError
from testbed.monitor import LinkMonitor
from testbed.netns import in_network_of
from testbed.network import Network, loopback_up
from testbed.proof import ProofError, prove_pairs
from topologies.load import load_fabric


def tell(**fields):
    print(json.dumps(fields), flush=True)


def main(action, topology, logs):
    fabric = load_fabric(topology)
    network = Network(fabric, logs=Path(logs))
    loopback_up()
    mode = "disjoint" if action == "disjoint" else "ecmp"
    controller = ControllerProcess(Path(topology), mode=mode, host="0.0.0.0", log=Path(logs) / "controller.log")
    controller.start()
    try:
        network.start()
    except TestbedError as error:
        tell(error=type(error).__name__, message=str(error))
        return
    controller.wait_ready(30)
    proof = prove_pairs(network)
    tell(pairs=proof.pairs, datapath=network.datapath)
    ACTIONS[action](network)


def rates(network):
    for link in network.fabric.links:
        for port in (link.a, link.b):
            with in_network_of(network.pid(port.node)):
                shown = subprocess.run(
                    ["tc", "class", "show", "dev", port.interface], capture_output=True, text=True, check=True
                )
            ((number, unit),) = re.findall(r"class htb 1:10 .* rate (\d+)([MG])bit ", shown.stdout)
            applied = int(number) * {"M": 10**6, "G": 10**9}[unit]
            tell(interface=port.interface, wanted=link.params.rate_bps, applied=applied)


def cut_link(network):
    host_link = next(link for link in network.fabric.links if link.tier == "host")
    change = links.change(network, host_link, False)
    tell(down=change.link, carrier=change.carrier, ovs=links.switch_port_states(network, host_link))
    try:
        prove_pairs(network, deadline_s=1.0)
    except ProofError as error:
        tell(missing=error.missing, message=str(error))
    change = links.change(network, host_link, True)
    tell(up=change.link, carrier=change.carrier)
    tell(pairs=prove_pairs(network, deadline_s=5.0).pairs)


def counters(network):
    monitor = LinkMonitor(network)
    before = {(s.link, s.direction): s.packets for s in monitor.sample()}
    source, target = network.fabric.hosts[0].name, network.fabric.hosts[-1].name
    address = network.fabric.host_port[target, 1].ipv6
    ping = network.popen(source, ["ping", "-6", "-q", "-i", "0.01", "-c", "100", address], stdout=subprocess.DEVNULL)
    tell(ping=ping.wait())
    after = {(s.link, s.direction): s.packets for s in monitor.sample()}
    tell(sent={f"{link} {way}": after[link, way] - before[link, way] for link, way in after})


def rest(_network):
    time.sleep(60)


ACTIONS = {"rates": rates, "cut_link": cut_link, "counters": counters, "disjoint": rates, "rest": rest}

if __name__ == "__main__":
    main(*sys.argv[1:])
