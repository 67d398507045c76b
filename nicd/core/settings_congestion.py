"""Knobs of a NIC's congestion control: the window, the signals that move it, the receiver's penalty.

MRC 1.0 4. The knobs of NSCC have the names that the controller API gives them, with the unit behind (times in ns, sizes
in payload bytes, factors in thousandths, `_ppt`); 0 means "derive from base RTT and bandwidth-delay product", which
`nicd.core.congestion.nscc_constants` does. Owns names, units, defaults and bounds; relations are `nicd.core.settings`'.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from nicd.core.congestion import policies
from nicd.core.mrc import penalty


@dataclass(frozen=True)
class CongestionKnobs:
    """How much may be in flight, and how much waits at a port."""

    congestion: str = "nscc"
    """The policy that moves the window towards a destination: "nscc", or "fixed" (`nicd.core.congestion.policies`)."""
    congestion_scope: str = "plane"
    """Whom a congestion context serves: "plane", one plane of one destination, because planes are networks of their own
    and a window that they share goes to the weakest; "destination", all its planes (MRC 1.0 4, which knows one
    network). The knobs that give bytes of a window mean all planes together and are shared out by their rates."""
    timestamps: bool = True
    """Data packets carry a time stamp (TSETH) and round trips come from its echo; False: the packets have none, and
    the sender reckons with its own send times (MRC 1.0 allows both)."""
    service_time: bool = True
    """The echoed stamp is moved on by the time a packet has waited for its SACK (a negotiated option of MRC 1.0)."""
    base_rtt_measured: bool = True
    """The base RTT of a destination begins at `base_rtt_ns` and follows lower samples of full packets, which an idle
    fabric gives: two NICs below one T0 are nearer. False: it stays."""
    base_rtt_compared: bool = True
    """A plane that is longer than `base_rtt_ns` says has a longer base RTT and a larger window. Where its round trips
    are longer than those of another plane, or than the base RTT without a full queue, probes that pass the queues find
    out whether it is (`length_probe_gap_ns`).
    False: the base RTT follows lower samples only, as published, and such a plane carries a part of its rate. Nor are
    ways back compared then: see `reverse_lag_ns`."""
    cwnd_bytes: int = 0
    """First window per destination, and with "fixed" the only one; planes with contexts of their own share it by their
    rates. Default: 1.5 times the bandwidth-delay product, as published, or `max_cwnd_bytes`; a flow alone then has its
    rate at once. Who expects an incast sets
    two packets per plane: 127 senders on one port then reach 0.944 of its rate in their first 60 base RTTs instead of
    0.861, 31 senders 0.967 instead of 0.838, and no timeout."""
    max_cwnd_bytes: int = 0
    """Largest window of NSCC per destination, shared in the same way. Default 1.5 times the bandwidth-delay product of
    the planes that a context serves, and where that is few packets what `cwnd_spare_packets` says."""
    cwnd_spare_packets: int = 4
    """What the largest window of NSCC by default has beyond one bandwidth-delay product, at least, in full packets and
    beside what waits for its SACK (`sack_bytes`, or what comes in `sack_delay_ns`): such packets as wait in the
    sender's port and before the SACK on its way. Half a product is less than that where a product is a few packets, at
    25 Gb/s and 1 us per link ten: one plane alone then reaches 0.91 of its rate instead of 0.98, at 10 Gb/s 0.80. Two
    to three packets do not reach it, five and more make queues. 0: 1.5 products at any rate, as published."""
    cwnd_full_ppt: int = 1500
    """The largest window of one that stays full, in thousandths of the largest one by default: where links are slow or
    lose packets, or some paths of a plane are slow, 1.5 products do not fill it. A plane at a quarter of 50 Gb/s, with
    as many links as its NICs need, has 0.93 instead of 0.83. 2000 gains no more. 1000: no larger, as published."""
    cwnd_bytes_min: int = 0
    """Smallest window of NSCC. Default 1/32 MTU, one packet in 32 round trips: a receiver with more senders than
    packets fit into a round trip leaves less than a packet to each. Never above the MTU, the published floor."""
    cwnd_paced_packets: int = 8
    """A window of fewer packets sends the part of it that is no whole packet now and then, so that on average a window
    leaves per round trip. 0: whole packets alone, as published; a window of 1.9 packets then has the rate of one of
    1.0, and four senders at 25 Gb/s had a Jain's index of 0.82 instead of 0.99. Below one packet it is paced anyway."""
    target_delay_ns: int = 0
    """Queueing delay that NSCC aims at. Default 0.75 base RTT where switches trim (`trim_nack`), 1 where not."""
    target_octave_ppt: int = 100
    """Without marks, a window grows up to a delay that is longer than the target by so many thousandths of it for each
    time that the window has halved, from what fills the port and a queue of the target. Marks reduce it only by what
    the average delay is above that. All senders of a receiver, or of an overloaded rack, see one delay; eta alone, the
    published means to fairness, takes a hundred round trips to make their windows equal. With 80 to 160 they are equal
    in some ten. 0: the same target for all windows, as published."""
    alpha_bytes: int = 0
    """Proportional increase: growth per window acknowledged without delay. Default 4 MTU a b."""
    fi_bytes: int = 0
    """Fair increase per window acknowledged. Default 5 MTU a."""
    fi_scale_ppt: int = 0
    """Fast increase, thousandths of the bytes acknowledged. Default 250 a."""
    fast_delay_ns: int = 0
    """Delay that is as good as none, for the fast increase. Default 1/12 base RTT: 1 us of the reference's 12.
    Never more than the target."""
    eta_bytes: int = 0
    """Growth per adjust period whatever else happens, which lets flows become fair. Default 0.15 MTU a."""
    adjust_bytes_threshold: int = 0
    """Increases are applied after this many bytes. Default 8 MTU."""
    adjust_period_threshold_ns: int = 0
    """And after this time. Default 1 base RTT."""
    gamma_ppt: int = 800
    """Multiplicative decrease: share of the relative surplus of the delay that is taken off."""
    max_md_jump_ppt: int = 500
    """The least that a multiplicative decrease leaves."""
    delay_avg_samples: int = 80
    """The average delay moves by one part in this many per sample (a weight of 0.0125)."""
    disable_qa: bool = False
    """No quick adapt."""
    qa_measured: bool = True
    """Quick adapt looks back over a base RTT and the target, or over a base RTT and the latest delay where that is
    longer. False: always the target, as published. Marks are off on the last hop, so a queue there stays where it
    trims, and a round trip is longer than the published span: what arrives in that is less than a window, and a flow
    that has fallen below the gate would be cut again and again while others grow."""
    qa_gate: int = 3
    """Quick adapt where less than the largest window divided by 2**qa_gate arrived in its span."""
    qa_threshold_ns: int = 0
    """Delay that triggers quick adapt where switches do not trim. Default 4 targets."""
    loss_is_congestion: bool = False
    """A packet that is gone without a trim takes its size off the window and makes quick adapt due, as published.
    False: only where NICs know that switches do not trim (`trim_nack`), where paths are not left for losses
    (`path_policy`), or where a full queue explains the loss (`loss_spared`) on a plane that has not trimmed yet. What
    is gone from a plane without delay was on a broken path, and the EV's state answers that: a plane that dies takes
    nothing from the others. What was out on a port that went down comes off in any case: there is less to send by."""
    late_delay_ns_max: int = 0
    """A longer delay is no receiver's queue but the path's own, and no reason to give way. Default 2 base RTT: above
    what the queue of a last hop holds, 1.5 of them with the switches' default."""
    loss_spared: int = 8
    """A packet that is gone without a trim, while its plane was late or trimmed after it had left, was dropped by a
    full queue: it comes off the window unless this plane has trimmed before, and its EV is spared, for so many losses
    of one path in a row where the other paths of its plane lose none. For each loss elsewhere per arrival elsewhere it
    is spared for twice as many more. So a NIC need not know whether switches trim. 0: the EV is always to blame."""
    doubt_probes: int = 3
    """Such a path is probed past the queues of data from its second loss in a row on: it is dead when it has not
    answered so many probes while others of its plane answered later ones, and more where some of theirs are lost, too.
    0: losses alone decide."""
    crowded_packets: int = 8
    """A plane is late in that sense from a target of NSCC on, and from the time of so many full packets at its rate:
    at 10 Gb/s and 1 us per link five packets take as long as the target, and sprayed packets meet so many by chance.
    Losses of a bad link were then taken for those of a queue. With many more than a queue holds drops are missed."""
    late_is_congestion: bool = True
    """An unmarked round trip above the target takes off the window what a mark at that delay would, once per round
    trip: the last hop does not mark, so there a delay alone tells of a full receiver. False: fair increase, as
    published for networks where every queue marks; then each of n senders grows until it is trimmed, and the share of
    packets sent again grows with n."""
    late_row: int = 4
    """So many late packets in a row, none of them marked, tell of a full receiver to a window that fills its port
    alone and is rarely marked: it shares neither the receiver nor a link of the fabric, and one packet is late by
    chance. Other windows answer the first. A healthy rack with all its senders at full rate has 0.95 of what is due at
    5 Gb/s and 1 us per link instead of 0.84, at 10 Gb/s 0.97 instead of 0.945. 1: every window answers the first."""
    late_jitter_times: int = 12
    """Where the delay of links varies, round trips are late without a queue: by so many times what two in a row differ,
    less what chance explains. With 10 us of jitter on each link, those of NICs, too, windows then leave 0.92 to 0.96 of
    line at 100 Gb/s instead of 0.24 to 0.63; a base RTT is 9 us there. 8 leaves more of them closed. 0: all that is
    late is a queue, as published."""
    receiver_penalty: str = "off"
    """When our SACKs penalise senders: "off", "incast", "ooo" (`nicd.core.mrc.penalty`)."""
    penalty_senders: int = 4
    """With "incast": so many peers at once are no incast."""
    penalty_ooo_packets: int = 1024
    """With "ooo": so many packets held out of order on a QP are none of its sender's fault."""
    cwnd_trim_response: bool = True
    """With "fixed": a trim NACK takes its packet off the window, acknowledged windows bring it back; False: never."""
    port_queue_bytes_max: int = 0
    """A port takes a further packet while fewer data bytes wait; 0: one full packet (besides the one on the wire),
    so that the EV is chosen at the last moment."""


DERIVED: Final[dict[str, float]] = {"late_delay_ns_max": 2.0}
"""Default of each derived time, in base RTTs. NSCC derives its own: the base RTT of a destination may be shorter."""
LEAST: Final[dict[str, int]] = dict.fromkeys(
    (
        "cwnd_bytes",
        "cwnd_bytes_min",
        "crowded_packets",
        "cwnd_spare_packets",
        "loss_spared",
        "doubt_probes",
        "max_cwnd_bytes",
        "target_delay_ns",
        "cwnd_paced_packets",
        "target_octave_ppt",
        "alpha_bytes",
        "fi_bytes",
        "fi_scale_ppt",
        "fast_delay_ns",
        "eta_bytes",
        "adjust_bytes_threshold",
        "adjust_period_threshold_ns",
        "gamma_ppt",
        "max_md_jump_ppt",
        "qa_gate",
        "qa_threshold_ns",
        "late_jitter_times",
        "penalty_ooo_packets",
        "port_queue_bytes_max",
    ),
    0,
) | {"cwnd_full_ppt": 1000}
"""Smallest value where it is not 1."""
MOST: Final[dict[str, int]] = {
    "gamma_ppt": 1000,
    "max_md_jump_ppt": 1000,
    "qa_gate": 32,
    "fi_scale_ppt": 100_000,
    "delay_avg_samples": 100_000,
    "crowded_packets": 1024,
    "cwnd_full_ppt": 100_000,
    "late_row": 1024,
    "late_jitter_times": 1024,
    "cwnd_spare_packets": 1024,
    "cwnd_paced_packets": 1024,
    "target_octave_ppt": 1000,
}
"""Largest value where there is one."""
CHOICES: Final[dict[str, Collection[str]]] = {
    "congestion": policies.POLICIES,
    "congestion_scope": ("plane", "destination"),
    "receiver_penalty": penalty.POLICIES,
}
"""What a knob that is a name may be."""
