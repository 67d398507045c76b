"""Who knew what when: how the switches of a fabric that routes for itself took one change.

Pure. Owns what follows from lines of events: of each switch when it knew of the change, by what, when it wrote its
table, and how many flows moved; of all of them when the last one had written. Lines are those of an event log, or
records of events with their `node`. Between the edges of two faults all that switches do is put down to the first one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, TypeAlias

from mrcfabric.units import NS_PER_US, Instant

Line: TypeAlias = Mapping[str, Any]
KINDS: Final = ("routing_session", "routes_heard", "route_damped", "fib_written", "fib_repaired")
"""Events of routing cores."""
EDGES: Final = ("fault", "ended", "healed", "died", "returned")
"""Lines of the agent that say that something changes."""
_WORDS: Final[Mapping[str, str]] = {"hold_time": "hold timer", "bfd": "BFD", "silence": "BFD"}


@dataclass(slots=True)
class Knowledge:
    """What one switch did about a change."""

    node: str
    knew_ns: Instant
    by: str
    """`carrier`, `BFD`, `hold timer`, `update`, `notification` and other ends of a session, `session` (it came up)."""
    peer: str
    """Who is at the other end of the port by which it knew."""
    wrote_first_ns: Instant | None = None
    wrote_last_ns: Instant | None = None
    """None: it had nothing to write."""
    writes: int = 0
    """Prefixes that it wrote, and ports that left all groups at once or came back."""
    moved: int = 0
    """Flows that left elsewhere after a write, or were lost; a flow that moved twice counts twice."""


@dataclass(slots=True)
class Convergence:
    """How a fabric took one change."""

    what: str
    """`f1 begins`, `f1 ends`."""
    at_ns: Instant
    until_ns: Instant | None
    """When something else changed, so that what came later is not put down to this; None: nothing has."""
    switches: list[Knowledge] = field(default_factory=list)
    """In the order in which they knew."""

    @property
    def last_ns(self) -> Instant | None:
        """When the last switch had written; None: nobody wrote."""
        return max((one.wrote_last_ns for one in self.switches if one.wrote_last_ns is not None), default=None)

    @property
    def took_ns(self) -> int | None:
        """The time of convergence."""
        return None if self.last_ns is None else self.last_ns - self.at_ns

    @property
    def moved(self) -> int:
        """Flows that moved in all switches."""
        return sum(one.moved for one in self.switches)

    def record(self) -> dict[str, Any]:
        """As plain data."""
        return {**asdict(self), "last_ns": self.last_ns, "took_ns": self.took_ns, "moved": self.moved}


def of_fault(lines: Iterable[Line], fault_id: str) -> list[Convergence]:
    """How the fabric took the beginning of a fault, and its end; empty when no line tells of that fault."""
    known = sorted(lines, key=lambda line: line["at_ns"])
    edges = [line for line in known if line["kind"] in EDGES]
    begun = next((line for line in edges if line["kind"] == "fault" and line["id"] == fault_id), None)
    if begun is None:
        return []
    over = next((line for line in edges if line["kind"] in ("ended", "healed") and line["id"] == fault_id), None)
    instants = sorted({line["at_ns"] for line in edges})
    found = []
    for what, edge in (("begins", begun), ("ends", over)):
        if edge is not None:
            until_ns = next((at_ns for at_ns in instants if at_ns > edge["at_ns"]), None)
            found.append(between(known, f"{fault_id} {what}", edge["at_ns"], until_ns))
    return found


def between(lines: Iterable[Line], what: str, at_ns: Instant, until_ns: Instant | None) -> Convergence:
    """How the fabric took what changed at an instant; `lines` in order of time."""
    found: dict[str, Knowledge] = {}
    for line in lines:
        if line["kind"] not in KINDS or line["at_ns"] < at_ns or (until_ns is not None and line["at_ns"] >= until_ns):
            continue
        node = line["node"]
        if node not in found:
            found[node] = Knowledge(node, line["at_ns"], detector(line), line.get("peer", ""))
        if line["kind"] in ("fib_written", "fib_repaired"):
            one = found[node]
            one.wrote_first_ns = line["at_ns"] if one.wrote_first_ns is None else one.wrote_first_ns
            one.wrote_last_ns = line["at_ns"]
            one.writes += 1
            one.moved += line["moved"]
    return Convergence(what, at_ns, until_ns, sorted(found.values(), key=lambda one: (one.knew_ns, one.node)))


def detector(line: Line) -> str:
    """By what a switch knew, in a word or two."""
    if line["kind"] == "routes_heard":
        return "update"
    if line["kind"] == "routing_session":
        why = "session" if line["up"] else str(line.get("why") or line.get("cause") or "")
        return _WORDS.get(why, why)
    return "damping" if line["kind"] == "route_damped" else "table"


def text(convergence: Convergence) -> str:
    """For people: a line for the change, and one for each switch."""
    one = convergence
    head = f"{one.what} at {_us(one.at_ns)} us"
    if one.took_ns is None:
        head += ": no switch has written its table"
    else:
        writers = sum(switch.writes > 0 for switch in one.switches)
        head += f": converged after {_us(one.took_ns)} us, {writers} switches wrote, {one.moved} flows moved"
    if one.until_ns is not None:
        head += f"; something else changed at {_us(one.until_ns)} us"
    cells = [("switch", "knew after us", "by", "from", "first write", "last write", "writes", "flows moved")]
    for switch in one.switches:
        first, last = (
            "-" if at_ns is None else _us(at_ns - one.at_ns) for at_ns in (switch.wrote_first_ns, switch.wrote_last_ns)
        )
        knew = _us(switch.knew_ns - one.at_ns)
        cells.append((switch.node, knew, switch.by, switch.peer, first, last, str(switch.writes), str(switch.moved)))
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    rows = ["  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
    return "\n".join([head, *(row.rstrip() for row in rows[: 1 + len(one.switches)] if one.switches)])


def left_port(lines: Sequence[Line], node: str, port: int, after_ns: Instant) -> tuple[Line, Line] | None:
    """When a switch stopped sending by a port that it used at an instant: the line by which it knew, and that in which
    it wrote; None: it has not. `lines` in order of time."""
    knew: Line | None = None
    for line in lines:
        if line["node"] != node or line["kind"] not in KINDS or line["at_ns"] <= after_ns:
            continue
        if line["kind"] == "fib_repaired" and line["port"] == port and not line["up"]:
            return knew or line, line
        if line["kind"] == "fib_written" and str(port) in line["before"].split(","):
            if str(port) not in line["ports"].split(","):
                return knew or line, line
        elif line["kind"] in ("routes_heard", "routing_session"):
            knew = line
    return None


def _us(at_ns: int) -> str:
    return f"{at_ns / NS_PER_US:,.3f}"
