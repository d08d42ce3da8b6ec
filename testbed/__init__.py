"""The room that makes a fabric real: isolation, Mininet network, Open vSwitch, link shaping, failures, proof, doctor.

It may import `topologies` and `controller`. Start reading at `network.py` (a fabric becomes interfaces and switches);
`sandbox.py` and `init.py` explain why nothing can be left behind on the machine.
"""
