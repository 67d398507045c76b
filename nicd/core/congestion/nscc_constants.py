"""The constants of NSCC: each follows from base RTT, bandwidth-delay product and MTU, unless a knob says otherwise.

Owns the arithmetic between knobs and the integers that `nscc` works with. MRC 1.0 4, UEC CMS.

**Which product.** A context serves one plane of a destination, so its bandwidth-delay product is that of the plane:
the rate of the slower end's port times the base RTT. With `congestion_scope: destination` its window holds what is in
flight on all planes together, and the product is that of all ports; then the planes have to be alike, because the
window goes to the one whose packets stay in it longest (`plane_windows`).

**The reference network.** The published constants belong to 100 Gb/s and 12 us, a product of 150,000 bytes, and scale
by a = BDP / 150,000. Growth in bytes per round trip therefore is a fixed share of the product, whatever the number of
planes: without delay 4 MTU a b, which is 8 % of it with the usual MTU of 4096. b compares the target with the
reference RTT; taken literally a fabric of long delays would grow by several products per round trip. The reference
RTT is scaled along: it is the base RTT here, so that b is target / base RTT, 0.75 or 1.

**Whose base RTT.** Target and increases belong to the network: they follow from `base_rtt_ns`, that of its longest
path, and are the same towards every destination, because flows that share a queue become fair by growing alike. The
base RTT that delays are measured against, and the largest window with it, belong to a destination and follow lower
samples: see `nscc`.

**The MTU** is the payload of a full packet. It is the floor, and the grain of growth: a fabric of small packets grows
more slowly in bytes, as its packets are.

Fractions are in thousandths, and every quantity is an integer: windows are the same on every machine.
"""

from collections.abc import Callable
from typing import Final

from mrcfabric.units import NEVER
from nicd.core.congestion.window import WindowSetup

# UEC CMS: 100 Gb/s times 12 us.
REFERENCE_BDP_BYTES: Final = 150_000
THOUSAND: Final = 1000


class NsccConstants:
    """What is the same towards every destination."""

    __slots__ = (
        "_octave_ppt", "adjust_bytes", "adjust_ns", "alpha_bytes", "crowded_ns", "eta_bytes", "fast_ns", "fi_bytes",
        "fi_scale_ppt", "qa_threshold_ns", "target_ns", "unmarked_ns",
    )  # fmt: skip

    def __init__(self, setup: WindowSetup) -> None:
        knobs = setup.settings
        mtu = knobs.mtu_bytes
        base_ns = knobs.base_rtt_ns
        bdp = setup.bdp_bytes(base_ns)
        trimming = knobs.trim_nack
        # MRC 1.0 4: 0.75 base RTT with trimming, 1.0 without.
        self.target_ns = knobs.target_delay_ns or max(1, base_ns * 3 // 4 if trimming else base_ns)
        # What is late by less may have met other sprayed packets by chance.
        self.crowded_ns = max(self.target_ns, setup.time_ns(knobs.crowded_packets * mtu))
        # Where every queue marks, what is late without a mark has met none.
        self.unmarked_ns = self.crowded_ns if knobs.late_is_congestion else NEVER
        # MRC 1.0 4: alpha = 4 MTU a b / target. This is alpha times target: growth per window without any delay.
        alpha = 4 * mtu * bdp * self.target_ns // (REFERENCE_BDP_BYTES * base_ns)
        self.alpha_bytes = knobs.alpha_bytes or max(1, alpha)
        # MRC 1.0 4: fi = 5 MTU a; fi_scale = 0.25 a; eta = 0.15 MTU a.
        self.fi_bytes = knobs.fi_bytes or max(1, 5 * mtu * bdp // REFERENCE_BDP_BYTES)
        self.fi_scale_ppt = knobs.fi_scale_ppt or max(1, THOUSAND * bdp // (4 * REFERENCE_BDP_BYTES))
        self.eta_bytes = knobs.eta_bytes or max(1, 3 * mtu * bdp // (20 * REFERENCE_BDP_BYTES))
        self.adjust_bytes = knobs.adjust_bytes_threshold or 8 * mtu
        self.adjust_ns = knobs.adjust_period_threshold_ns or base_ns
        # MRC 1.0 4: the delay is no trigger with trimming.
        self.qa_threshold_ns = 0 if trimming else knobs.qa_threshold_ns or 4 * self.target_ns
        # 1 us of the reference network's 12 us, so that it scales with the base RTT.
        # Never above the target: from there on an increase is fair, and a proportional one would be negative.
        self.fast_ns = min(knobs.fast_delay_ns or max(1, base_ns // 12), self.target_ns)
        self._octave_ppt = knobs.target_octave_ppt if knobs.late_is_congestion else 0

    def most_of(self, setup: WindowSetup, base_ns: int, most_bytes: Callable[[int], int]) -> int:
        """The largest window where a round trip without any queue takes `base_ns`, by what makes a window of one."""
        most = most_bytes(base_ns)
        if not setup.near:
            return most
        # Beside distant senders the queue stands at their target: full rate then needs base RTT + target in flight.
        far = most_bytes(setup.settings.base_rtt_ns)
        return max(most, min(setup.bdp_bytes(base_ns + self.target_ns), far))

    def target_of(self, cwnd_bytes: int, span_bytes: int) -> int:
        """Up to which delay without a mark such a window grows, in ns: see `target_octave_ppt`.

        `span_bytes` fill the port and a queue of the target.
        """
        target_ns = self.target_ns
        # In 1/256: how many such windows fill the port and a queue of the target.
        parts = (span_bytes << 8) // cwnd_bytes
        octaves = parts.bit_length() - 9
        if octaves < 0 or not self._octave_ppt:
            return target_ns
        halvings = (octaves << 8) + (parts >> octaves) - 256
        return target_ns + target_ns * self._octave_ppt * halvings // (256 * THOUSAND)
