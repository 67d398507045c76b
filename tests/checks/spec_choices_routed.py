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
        "but 1/n. No routing protocol tells the switches on the other side.",
        _of(SWITCH, "ecmp_failover", "ecmp_failover_ns", "ecmp_resilient"),
    ),
)
