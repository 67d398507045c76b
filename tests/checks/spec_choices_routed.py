"""The rows of `spec_choices` that are about switches of RoCE fabrics: no MRC, but the same daemons."""

from tests.checks.choice import OPTION, SWITCH, UNKNOWN, Choice
from tests.checks.choice import of as _of

ROUTED = (
    Choice(
        "Forwarding: by uSIDs, or by NIC addresses over paths of equal cost",
        OPTION,
        "uSIDs, which is MRC's. The other way is for RoCE: a hash over both addresses, next header and both UDP ports "
        "picks an up-link; a T1 has one port per T0.",
        _of(SWITCH, "forwarding"),
    ),
    Choice(
        "The hash of equal-cost paths, and its seed",
        UNKNOWN,
        "A mixing finaliser with a seed per switch. A common seed, or CRC-32 whose seed is only XORed in, polarises a "
        "second stage of hashing: it uses one link in k.",
        _of(SWITCH, "ecmp_hash", "ecmp_seed"),
    ),
    Choice(
        "What a switch does about a dead up-link",
        OPTION,
        "Nothing: tables are static and what was hashed there is lost. When asked to, a T0 takes an up-link that lost "
        "its own carrier out of the group, a millisecond later; only its flows move with resilient hashing, else all "
        "but 1/n. Nobody tells the switches on the other side, unless each routes for itself (`switch.routing: bgp`).",
        _of(SWITCH, "ecmp_failover", "ecmp_failover_ns", "ecmp_resilient"),
    ),
    Choice(
        "Which classes a switch pauses instead of dropping, and when",
        OPTION,
        "None, unless asked: then class 3. A (ingress port, class) is paused at an eighth of the unused pool, or at a "
        "number of bytes, and let go 3,072 bytes below; each has 4,096 bytes to itself. The account of the buffer is "
        "that of public simulators, but for one frame per pair that crosses the threshold.",
        _of(
            SWITCH,
            "lossless",
            "pfc_classes",
            "buffer_bytes",
            "pfc_threshold",
            "pfc_xoff_bytes",
            "pfc_alpha_shift",
            "pfc_reserved_bytes",
            "pfc_xon_offset_bytes",
        ),
    ),
    Choice(
        "Which class of a port goes first",
        OPTION,
        "Classes 6 and 7 before all others, the higher one first; MRC's control packets, acknowledgements and "
        "notifications of RC are in class 6. The rest share the wire by weights (deficit round robin), by default "
        "alike. A lossless class may not go before class 6.",
        _of(SWITCH, "class_strict", "class_weights"),
    ),
    Choice(
        "Headroom for frames that come after a pause was decided",
        UNKNOWN,
        "What the link needs: both delays, a frame in each serializer and the pauses themselves; nodes here obey at "
        "once. Or what drivers reserve for a cable of so many metres, or a number.",
        _of(SWITCH, "pfc_headroom", "pfc_cable_metres"),
    ),
    Choice(
        "How long a pause is, and how often it is repeated",
        OPTION,
        "As long as a frame can say, repeated at half time.",
        _of(SWITCH, "pfc_quanta"),
    ),
    Choice(
        "What ends a pause that never ends",
        OPTION,
        "Nothing, unless set. Then the class of that port stops obeying; what waits goes out, nothing is dropped for "
        "it. It obeys again after a time without a pause frame.",
        _of(SWITCH, "pfc_watchdog_ns", "pfc_watchdog_restore_ns"),
    ),
    Choice(
        "Which pauses are worth an event",
        OPTION,
        "Those of a class of a port, of switches and NICs, that add up to a few round trips without a break as long; "
        "one event then, and one when it is over.",
        _of(SWITCH, "pfc_event_ns"),
    ),
    Choice(
        "Thresholds of RED in bytes",
        OPTION,
        "By share, as MRC's; RoCE's published profiles are in bytes and can be set so.",
        _of(SWITCH, "ecn_min_bytes", "ecn_max_bytes"),
    ),
)
