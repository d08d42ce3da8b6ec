"""One host of the agent tests: started in its namespace, talks JSON lines with the test.

In: a configuration line, then the other host's parameters, then any line to stop. Out: our parameters, then one line
for each change worth knowing, last a summary.
"""

from __future__ import annotations

import hashlib
import json
import select
import sys
from random import Random
from typing import Any

from mrc_agent.agent import Agent, AgentConfig, MessageArrived, MrcError, Peer, PlaneInterface, WorkCompletion


def say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


def main() -> None:
    config = json.loads(sys.stdin.readline())
    planes = tuple(PlaneInterface(*port) for port in config["planes"])
    try:
        agent = Agent(AgentConfig(config["host"], planes, seed=config["seed"]))
    except MrcError as error:
        say(error=str(error))
        return
    there = config["peer"]
    peer = Peer(
        there["name"],
        {int(plane): address for plane, address in there["addresses"].items()},
        {int(plane): tuple(evs) for plane, evs in there["evs"].items()},
        config["base_rtt_s"],
        {int(plane): config["rate_bps"] for plane in there["addresses"]},
    )
    size, places, count = config["size"], 2, config["messages"]
    memory = bytearray(size * places)
    region = agent.register(memory)
    qp = agent.create_qp(peer)
    say(info=qp.local_info())
    remote = json.loads(sys.stdin.readline())
    qp.connect(remote)
    target = remote["regions"][0]
    payload = memoryview(Random(config["host"]).randbytes(size))
    sent = hashlib.sha256(payload).hexdigest()
    statuses: list[str] = []
    hashes: list[str] = []
    posted = 0
    fd = sys.stdin.fileno()
    while True:
        while posted < count and posted - len(statuses) < places and not set(statuses) - {"success"}:
            qp.post_write(payload, target["address"] + posted % places * size, target["rkey"], posted)
            posted += 1
        for event in agent.step(1.0, (fd,)):
            if isinstance(event, MessageArrived):
                start = event.address - region.address
                hashes.append(hashlib.sha256(memory[start : start + size]).hexdigest())
                say(arrived=event.msn)
            elif isinstance(event, WorkCompletion):
                statuses.append(event.status)
                say(completed=event.wr_id, status=event.status)
        if select.select([fd], [], [], 0)[0]:
            sys.stdin.readline()
            break
    say(
        sent=sent,
        hashes=hashes,
        statuses=statuses,
        counters=agent.counters(),
        evs=agent.ev_table(),
        ev_events=[(event.plane, event.ev, event.after, event.cause) for event in agent.take_ev_events()],
        state=qp.state.value,
    )
    agent.close()


if __name__ == "__main__":
    main()
