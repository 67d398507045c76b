"""The rows of `spec_choices` that are about switches that route for themselves: no MRC, but the same daemons."""

from tests.checks.choice import DEVIATION, OPTION, SWITCH, UNKNOWN, Choice
from tests.checks.choice import of as _of

BGP = (
    Choice(
        "TCP beneath BGP",
        DEVIATION,
        "Real segments on port 179, between link-local addresses, as much of TCP as two neighbours need: handshake, "
        "numbers, acknowledgements at once, four segments under way, time-out of 200 ms that doubles, close. Left out: "
        "congestion control, SACK, time stamps, measuring the round trip, two ends that dial at once (the lower tier "
        "dials), waiting after a close.",
    ),
    Choice(
        "Who is a neighbour",
        DEVIATION,
        "What the topology says; router advertisements and sessions without numbers are left out. AS numbers are "
        "private ones of four bytes: one per T0, one for the T1s of a plane.",
    ),
    Choice(
        "An UPDATE that is malformed",
        DEVIATION,
        "Ends the session, as RFC 4271 has it; RFC 7606 would take the routes as withdrawn.",
    ),
    Choice(
        "Timers of BGP",
        OPTION,
        "FRR's for data centres: 3, 9 and 10 s; the hold time in whole seconds from 3 on. Jitter of 75 to 100 % on "
        "keepalives, connect retry and MRAI. A session that ended rests for a second.",
        _of(SWITCH, "bgp_keepalive_ns", "bgp_hold_ns", "bgp_connect_retry_ns", "bgp_jitter"),
    ),
    Choice(
        "MRAI",
        OPTION,
        "0, as today's FRR. One timer per neighbour, for announcements and withdrawals alike.",
        _of(SWITCH, "bgp_advertisement_interval_ns"),
    ),
    Choice(
        "How a lost neighbour is noticed",
        OPTION,
        "By the carrier of the port, a millisecond later; otherwise by the hold time. BFD beside each session when "
        "asked for, with FRR's 300 ms times 3; no echo, no demand, no authentication.",
        _of(
            SWITCH,
            "bgp_fast_external_failover",
            "bgp_carrier_ns",
            "bfd",
            "bfd_transmit_interval_ns",
            "bfd_receive_interval_ns",
            "bfd_detect_multiplier",
        ),
    ),
    Choice(
        "What a switch tells of",
        OPTION,
        "A T0 of the fewest prefixes that cover its NICs, or of each NIC by itself. Routes are told on before they are "
        "in the table, and also to who will refuse them for the loop, unless asked otherwise.",
        _of(SWITCH, "bgp_prefixes", "bgp_suppress_fib_pending", "bgp_sender_loop_detection"),
    ),
    Choice(
        "Groups of equal paths",
        OPTION,
        "All paths of the same length, whatever AS numbers are in them, up to 64. A resilient group draws the highest "
        "random weight among its members; a plain one takes the hash modulo their number.",
        _of(SWITCH, "bgp_maximum_paths", "bgp_multipath_relax"),
    ),
    Choice(
        "How long a processor and a table take",
        UNKNOWN,
        "Assumptions, no measurements: 1 ms for the messages that wait together and 10 us per prefix in them, then "
        "50 us for each prefix that is written. A port whose neighbour is lost leaves all groups at once.",
        _of(SWITCH, "bgp_batch_ns", "bgp_prefix_ns", "fib_write_ns", "fib_local_repair"),
    ),
    Choice(
        "How a fabric begins",
        DEVIATION,
        "Switches know the routes of the fabric without faults; while sessions come up these count as after a graceful "
        "restart, until neighbours have told theirs, or for 10 s. A switch that comes back begins with nothing.",
        _of(SWITCH, "bgp_start", "bgp_stalepath_ns"),
    ),
    Choice(
        "Damping",
        OPTION,
        "Off. FRR's figures when asked for: 1,000 per withdrawal and 500 per change, half-life 15 minutes, left out "
        "above 2,000 (RFC 7196: 6,000) until 750, at most for an hour. Penalties fade without steps.",
        _of(
            SWITCH,
            "bgp_dampening",
            "bgp_dampening_half_life_ns",
            "bgp_dampening_reuse",
            "bgp_dampening_suppress",
            "bgp_dampening_max_suppress_ns",
        ),
    ),
)
