"""The host's counters: every reason to drop a packet has a name."""

from __future__ import annotations

COUNTERS = {
    "sent_packets": "data packets sent, retransmissions included",
    "retransmitted_packets": "data packets sent again",
    "acked_packets": "data packets acknowledged by SACK or by transport acknowledgement",
    "lost_packets": "data packets declared lost, by SACK or by timeout",
    "timeouts": "data packets declared lost by timeout",
    "spurious_losses": "packets declared lost and acknowledged before they were sent again",
    "spurious_retransmissions": "retransmissions whose original was acknowledged after all",
    "evictions_refused": "EVs kept although they lost a packet, because ev_min_active EVs are left",
    "reliability_probes": "reliability probes sent",
    "ev_probes": "EV probes sent",
    "ev_probe_answers": "answers to EV probes received in time",
    "sacks_sent": "SACKs sent",
    "sacks_received": "SACKs received and taken",
    "acks_received": "transport acknowledgements received and taken",
    "nacks_sent": "NACKs sent",
    "nacks_received": "NACKs received and taken",
    "received_packets": "data packets taken and placed",
    "received_marked_packets": "data packets taken that carried ECN CE",
    "duplicate_packets": "data packets that had arrived before (the peer's spurious retransmissions, or copies)",
    "dropped_truncated": "shorter than its headers, or longer than its padding allows",
    "dropped_bad_icrc": "integrity check failed",
    "dropped_unknown_opcode": "not an opcode of MRC, or one that this agent does not serve",
    "dropped_unknown_qp": "no such queue pair",
    "dropped_qp_not_ready": "queue pair not connected, or in ERROR",
    "dropped_unknown_peer": "source address is not the connected peer's on this plane",
    "dropped_psn_out_of_window": "PSN at or beyond cack + MPR x 128",
    "dropped_bad_rkey": "no memory region has this rkey",
    "dropped_out_of_region": "address or length reaches outside the region",
    "dropped_length_mismatch": "payload and message length contradict each other",
    "dropped_bad_sack": "acknowledges what was never sent, or an entropy value that is not ours",
    "dropped_bad_ack": "completes messages that were never sent",
    "dropped_unknown_probe": "answer to a probe that nobody waits for",
}
"""Name of each counter of the core and what it counts."""


def new_counters() -> dict[str, int]:
    """All counters at zero."""
    return dict.fromkeys(COUNTERS, 0)
