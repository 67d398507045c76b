"""Knobs of a NIC's paths: EVs, their probes, ports, and the reverse set.

MRC 1.0 11.2 gives states and transitions, not values: times are in units of the base RTT, and 0 means "derive".
Owns names, units, defaults and bounds; relations between knobs are `nicd.core.settings`'.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from nicd.core.mrc.path_policy import POLICIES


@dataclass(frozen=True)
class PathKnobs:
    """How EVs are drawn, probed and replaced, and what peers are told of ports."""

    path_policy: str = "mrc"
    """How a QP uses its paths: "mrc" keeps a state per EV; "oblivious" sprays over all EVs and learns nothing; "single"
    keeps one EV for life. The latter two are there to be compared with (`nicd.core.mrc.path_policy`)."""
    evs_active: int = 128
    """Active EVs per QP over all planes (MRC 1.0 11.2: usually 128-256); a multiple of the number of planes."""
    evs_reserve: int = 32
    """Inactive EVs per QP that replace bad ones in their own plane; a multiple of the number of planes."""
    ev_min_active: int = 16
    """With this many active EVs left no further one is marked ASSUMED_BAD, unless its path is dead and the path of
    another active EV delivers."""
    ev_profiles_max: int = 64
    """EV profiles of a NIC, the built-in one included; creating more is refused."""
    profile_evs_max: int = 4096
    """EVs in one profile that lists or generates them."""
    ev_events_max: int = 1024
    """EV events kept until the controller takes them; further ones are lost, and counted (controller API)."""
    ev_probe_timeout_ns: int = 0
    """How long a batch of the controller's EV probes waits for answers. Default 20 base RTT; public sample code waits
    2 ms."""
    ev_probe_evs_max: int = 4096
    """EVs in one such batch."""
    ev_probe_batches_max: int = 16
    """Batches whose results are kept; the oldest is forgotten."""
    deny_entries_max: int = 65_536
    """Entries of the standing list of barred paths; a further one is refused. Every link of a plane of the largest
    fabric, 512 T0s by 256 T1s, seen from one NIC: 512 and 256 entries per plane would do."""
    path_dead_losses: int = 3
    """So many packets lost in a row on one path, by whichever EVs, make it dead: all active EVs that use it become
    ASSUMED_BAD at once. Where each has to lose a packet of its own, two dead T1s of four cost 4 points of a loaded
    plane's share at 10 Gb/s and 2 at 25. Where single packets are lost, later ones show that the path lives. What is
    in flight on it is lost once it could have been acknowledged, unless its plane is crowded."""
    skip_ns: int = 0
    """How long an EV stays in SKIP at most; the scan ends it when it has passed the EV once. Default one base RTT. A
    mark tells of a queue of one round trip ago, and where a turn takes longer, all EVs of a path are left out because
    of a queue that is gone: with one of four T1s at a tenth of its rate, at 25 Gb/s, 94 % of what was due arrived by
    the scan alone, and 97 % arrive."""
    skip_turn_ppt: int = 500
    """And no longer than so many thousandths of a turn of the scan, as the last one took. Where several turns fit into
    a round trip, each of them would be left out for a queue that is gone: with twice as many NICs as up-links at
    400 Gb/s queues swing between empty and full within five round trips, and flows get unequal parts. 0: no such
    limit."""
    path_shares: bool = True
    """A path of a plane that is marked and later than another one by `path_late_ns` gets fewer of its turns, and more
    again when marks end (`nicd.core.mrc.path_shares`); what is late because of one path alone moves no window, and what
    a path without marks is longer than the others by 1.5 times that is no delay and makes the window larger, where many
    packets show it what it is longer by half of it. False: SKIP alone, a turn per mark, which cannot leave a link alone
    that has lost more than half of its rate."""
    path_late_ns: int = 0
    """So much longer are the round trips of such a path. Default half a base RTT."""
    always_skip_marks: int = 0
    """As a receiver: this many marked packets in a row on one EV are answered by ALWAYS_SKIP, which makes the EV
    ASSUMED_BAD at the sender. 0: never, every mark says SKIP_ONCE; a queue that all paths share must not cost EVs."""
    marked_evs_max: int = 1024
    """EVs per QP whose marks are counted for `always_skip_marks`; with more of them the count begins anew."""
    probe_period_ns: int = 0
    """Between two probes of an ASSUMED_BAD EV. Default 5 base RTT."""
    probe_backoff_max: int = 2
    """An unanswered probe doubles the period up to this many times the plain one: a long outage stays cheap."""
    probe_successes: int = 2
    """Answers in a row that bring an EV back. Two: one answer may be luck on a path that loses some packets, or
    the last packet before a link goes down again; each further one costs a period of a good path."""
    probe_successes_max: int = 16
    """Each time a path has failed again after it had worked, and more often than the other paths of its plane, its EVs
    need twice as many answers, up to this: a path that fails now and then is not tried again and again. A healed one
    is back after so many probe periods: 80 base RTT."""
    path_forget_ns: int = 0
    """After so long without one a failure of a path is forgotten. Default 100 base RTT."""
    plane_keep_ppt: int = 500
    """So many thousandths of a plane's active EVs stay in use although they lose packets, as long as their paths
    deliver: where so many lose, the plane does, and what it still carries is worth more than what it loses. Where all
    its paths in use have failed of late, none twice as often as another, every EV stays."""
    probes_outstanding_max: int = 256
    """Probes of one QP waiting for an answer; the oldest is forgotten beyond it."""
    port_update_retry_ns: int = 0
    """Until a Port Status Update is answered it is sent again, each time after twice the wait. Default 4 base RTT."""
    port_update_tries: int = 12
    """After this many the peer is taken for gone."""
    reverse_candidates: int = 8
    """EVs per plane and peer from which the paths of acknowledgements are drawn."""
    reverse_refresh_ns: int = 0
    """While a peer's data arrive, one EV for acknowledgements is probed per this time. Default 1 base RTT."""
    reverse_turns: int = 8
    """And no more than so many per port of the NIC and refresh time for all peers together, in turn. 0: without bound,
    and a receiver of 127 senders on one port loses 4 % of its rate to probes and answers."""
    reverse_idle_ns: int = 0
    """Without data for this long the refreshing stops; eight times as long where no way back is known. Default 2 base
    RTT."""
    reverse_wait_ns: int = 0
    """So long a probe of an EV for acknowledgements waits for its answer. Default 1.5 base RTT."""
    reverse_lag_ns: int = 0
    """A plane whose last two probes, or our own data, take so much longer than those of the quickest plane carries no
    acknowledgements while others do: they would make packets of all planes look late, and hold the windows of all.
    Default half a base RTT: windows hold half a bandwidth-delay product beyond one. Half of it
    is enough for the average over acknowledgements that come back on a plane whose own packets are late
    (`nicd.core.congestion.ways_back`)."""
    length_probe_gap_ns: int = 0
    """The NIC asks one peer at a time how long planes are, or up to eight paths, so long after it has asked the last
    one: two probes per plane, one per path, and up to two answers to each. Default 2 base RTT: 16 NICs that all send to
    each other send one probe per 100 data packets in place of eight. With `base_rtt_compared: false` it never asks."""
    reverse_silent_probes: int = 1
    """After so many probes of a plane's EV in use in a row without an answer the plane is in doubt: acknowledgements
    leave it out, until something comes through on it again. Of planes that are all in doubt none is left out: their
    acknowledgements take another path each time. 0: never. A plane without a live path would lose its share of the
    acknowledgements for as long as it is gone."""


DERIVED: Final[dict[str, float]] = {
    "ev_probe_timeout_ns": 20.0,
    "probe_period_ns": 5.0,
    "path_forget_ns": 100.0,
    "port_update_retry_ns": 4.0,
    "reverse_refresh_ns": 1.0,
    "reverse_idle_ns": 2.0,
    "path_late_ns": 0.5,
    "reverse_wait_ns": 1.5,
    "reverse_lag_ns": 0.5,
    "length_probe_gap_ns": 2.0,
    "skip_ns": 1.0,
}
"""Default of each derived time, in base RTTs."""
LEAST: Final[dict[str, int]] = {
    "evs_reserve": 0,
    "ev_min_active": 0,
    "always_skip_marks": 0,
    "reverse_silent_probes": 0,
    "reverse_turns": 0,
    "plane_keep_ppt": 0,
    "skip_turn_ppt": 0,
}
"""Smallest value where it is not 1."""
MOST: Final[dict[str, int]] = {
    "evs_active": 65_536,
    "evs_reserve": 65_536,
    "probes_outstanding_max": 32_768,
    "port_update_tries": 32,
    "probe_successes_max": 1024,
    "plane_keep_ppt": 1000,
    "skip_turn_ppt": 1000,
    "reverse_silent_probes": 15,
}
"""Largest value where there is one."""
CHOICES: Final[dict[str, Collection[str]]] = {"path_policy": POLICIES}
"""What a knob that is a name may be."""
