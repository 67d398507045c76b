"""The metrics of switches that route for themselves: sessions, what neighbours tell, the table. Others have no such
series.

Owns the definitions; `switchd.metrics` puts them behind its own. Packets between routing cores are not among those
that the switch has received.
"""

from collections.abc import Iterator

from mrcfabric.metrics import NS, Counters, Definition, Reader, Sample


def _of(*path: str) -> Reader:
    """A number of the routing core, or of the table that it fills."""

    def read(counters: Counters) -> Iterator[Sample]:
        if "routing" in counters["core"]:
            found = counters["core"]
            for key in path:
                found = found[key]
            yield None, (), found

    return read


def _each(name: str) -> Reader:
    """A number of each entry of a table of the routing core."""

    def read(counters: Counters) -> Iterator[Sample]:
        for key, count in counters["core"].get("routing", {}).get(name, {}).items():
            yield None, (key,), count

    return read


def _both(name: str) -> Reader:
    """What came and what went."""

    def read(counters: Counters) -> Iterator[Sample]:
        routing = counters["core"].get("routing")
        if routing is not None:
            yield None, ("in",), routing[f"{name}_heard"]
            yield None, ("out",), routing[f"{name}_sent"]

    return read


def _age(counters: Counters) -> Iterator[Sample]:
    changed_ns = counters["core"].get("routing", {}).get("changed_ns", -1)
    if changed_ns >= 0:
        yield None, (), (counters["process"]["now_ns"] - changed_ns) * NS


DEFINITIONS = (
    Definition("switch_routing_sessions", "gauge", "sessions", "BGP sessions with neighbours, by state (RFC 4271 8.2).",
               "Does every neighbour have its session?", _each("sessions"), ("state",)),
    Definition("switch_routing_bfd_sessions", "gauge", "sessions",
               "Sessions of BFD beside them, by state (RFC 5880 6.2); none without `switch.bfd`.",
               "Are neighbours heard?", _each("bfd"), ("state",)),
    Definition("switch_routing_updates", "counter", "messages", "UPDATE messages, by direction (in, out).",
               "How much do switches tell each other?", _both("updates"), ("direction",)),
    Definition("switch_routing_withdrawals", "counter", "prefixes", "Prefixes that were taken back, by direction.",
               "Do routes come and go?", _both("withdrawals"), ("direction",)),
    Definition("switch_routing_packets", "counter", "packets", "Packets of routing cores, by direction.",
               "What does routing cost?", _both("packets"), ("direction",)),
    Definition("switch_routing_bad_packets", "counter", "packets", "Packets for the core that were thrown away.",
               "Does somebody send nonsense?", _each("bad"), ("reason",)),
    Definition("switch_routing_routes", "gauge", "routes", "Routes that neighbours tell of.",
               "How much is there to choose from?", _of("routing", "routes")),
    Definition("switch_routing_prefixes", "gauge", "prefixes", "Prefixes that there is a way to, its own included.",
               "Does the switch know every rack?", _of("routing", "prefixes")),
    Definition("switch_routing_damped_routes", "gauge", "routes", "Routes that are left out because they flapped.",
               "Which ways does damping keep from use?", _of("routing", "damped")),
    Definition("switch_routing_waiting_prefixes", "gauge", "prefixes", "Prefixes that wait to be written.",
               "Is the table behind what the switch knows?", _of("routing", "fib_waiting")),
    Definition("switch_routing_table_entries", "gauge", "prefixes", "Prefixes in the table.",
               "How large is the table?", _of("fib", "entries")),
    Definition("switch_routing_table_writes", "counter", "prefixes", "Prefixes that were written into the table.",
               "How often does the table change?", _of("fib", "writes")),
    Definition("switch_routing_table_age_seconds", "gauge", "seconds",
               "Fabric time since the table, or a group in it, was changed last; no series before the first change.",
               "Has the fabric converged?", _age),
)  # fmt: skip
