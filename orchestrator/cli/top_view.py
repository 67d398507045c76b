"""A snapshot as lines of a terminal: the contents of `mrcfabric top`.

Pure. Owns the contents, their order, and what is left out when there is little room. `live_view` takes the looks,
`top_screen` has the terminal. A problem has a word beside its colour.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Final, TypeAlias

from rich.text import Text

from mrcfabric.units import GBPS
from orchestrator.cli.pause_text import root_says
from orchestrator.cli.top_rc import RC_HEADS, is_rc, rc_lines, rc_rows
from orchestrator.cli.uet_text import uet_text
from orchestrator.live.paused_links import paused_shares
from orchestrator.live.snapshot import DirectionView, FaultView, NicView, Snapshot, SwitchView
from orchestrator.live.uet_view import uet_sums
from orchestrator.runs.screen import bar

Worst: TypeAlias = tuple[str, DirectionView, str]
"""Direction of a link, as `h000>p0-t0-0`; its figures; the word for its problem, "" without one."""

ORDERS: Final = ("utilisation", "queue", "drops", "marks")
"""The figures by which links can be ranked."""
BY_PAUSE: Final = "paused"
"""One more where switches pause: the share of the time since the look before for which the sender was paused."""
KEYS_TEXT: Final = "q quit   s sort   p pause"
_BAR_CELLS: Final = 20
_PLANE_COLUMNS: Final = 54
"""Columns of a plane's line beside its bar."""
_ROWS_MAX: Final = 5
"""Most rows of faults, of programs, and of nodes that are not up."""
_WRONG: Final = "bold red"


def worst_links(shot: Snapshot, order: str, count: int) -> list[Worst]:
    """The directions of links with the highest figure; links whose state is not up come first."""
    shares = paused_shares(shot.pauses)

    def rank(worst: Worst) -> tuple[bool, float, float]:
        name, way, wrong = worst
        figures = {"utilisation": way.utilisation, "queue": way.queue_bytes, "drops": way.drops, "marks": way.marks}
        return bool(wrong), shares.get(name, 0.0) if order == BY_PAUSE else figures[order], way.utilisation

    return sorted(_ways(shot), key=rank, reverse=True)[:count]


def _ways(shot: Snapshot) -> Iterator[Worst]:
    for name, link in shot.links.items():
        low, high = name.split("~")
        wrong = "" if link.state == "up" else link.state.upper()
        yield f"{low}>{high}", link.up, wrong
        yield f"{high}>{low}", link.down, wrong


def screen(
    name: str, shot: Snapshot, line_bps: float, width: int, height: int, order: str, state: str, evs: bool = True
) -> Text:
    """The whole terminal, `height` lines of at most `width` columns.

    `line_bps`: of all NICs in one plane; `state`: a word about the screen itself, as PAUSED; `evs`: whether the NICs
    have EVs to count.
    """
    room = height - 1
    lines = [_head(name, shot, state)]
    planes = _planes(shot, line_bps, min(_BAR_CELLS, max(0, width - _PLANE_COLUMNS)), evs)
    lines += _some(planes, room * 2 // 3, "planes")
    lines += [*rc_lines(shot), *uet_lines(shot)][: room // 4]
    for rows, share, what in (
        (_faults(shot), 4, "faults"), (_pauses(shot), 4, "pauses"), (_programs(shot), 4, ""), (_nodes(shot), 3, "nodes")
    ):  # fmt: skip
        lines += _some(rows, min(_ROWS_MAX, max(1, (room - len(lines)) // share)), what)
    left = room - len(lines) - 2
    nics = max(0, min(len(shot.nics), left // 3))
    if left > nics:
        trims = "paused" if is_rc(shot) else "trims"
        lines.append(
            Text(f"{'link, by ' + order:28}{'used':>6}{'queue B':>10}{'marks':>8}{trims:>8}{'drops':>8}", "bold")
        )
        shares = paused_shares(shot.pauses) if is_rc(shot) else None
        lines += [_link(worst, shares) for worst in worst_links(shot, order, left - nics)]
    if nics and is_rc(shot):
        lines += [Text(RC_HEADS, "bold"), *rc_rows(shot, nics)]
    elif nics:
        bad = f"{'bad EVs':>9}" if evs else ""
        heads = f"{'NIC':10}{'Gb/s':>9}{'QPs':>6}{'errors':>8}{'again':>8}{bad}{'ports':>8}"
        lines += [Text(heads, "bold"), *_nics(shot, nics, evs)]
    lines = lines[:room]
    lines += [Text()] * (room - len(lines)) + [Text(KEYS_TEXT, "dim")]
    for line in lines:
        line.truncate(width)
    return Text("\n").join(lines)


def uet_lines(shot: Snapshot) -> list[Text]:
    """A line for all UET NICs together; none for others."""
    sums = uet_sums(shot.nics.values())
    return [] if sums is None else [Text(uet_text(asdict(sums)))]


def _some(rows: Iterable[Text], count: int, what: str) -> list[Text]:
    """As many rows as fit; if `what` is given, the last one says how many more there are."""
    found = list(rows)
    if len(found) <= count:
        return found
    if not what:
        return found[-count:]
    rest = f"{len(found)} {what}" if count == 1 else f"and {len(found) - count + 1} more {what}"
    return [*found[: count - 1], Text(rest, _WRONG)]


def plain(shot: Snapshot, evs: bool = True) -> str:
    """One look in one line, for output that is no terminal; `evs`: whether the NICs have EVs to count."""
    counts = {state: sum(plane.evs[state] for plane in shot.planes) for state in shot.planes[0].evs}
    planes = " ".join(f"{plane.goodput_bps / GBPS:.1f}" for plane in shot.planes)
    parts = [
        f"{shot.at_ns / 1000:,.3f} us",
        f"{shot.goodput_bps / GBPS:.1f} Gb/s ({planes})",
        *(["EVs " + " ".join(f"{state}={count}" for state, count in counts.items())] if evs else []),
        *(line.plain.strip() for line in (*rc_lines(shot), *uet_lines(shot))),
        f"ports down {sum(plane.ports_down for plane in shot.planes)}",
        *([f"paused {len(shot.pauses)} directions"] if shot.pauses else []),
        "faults " + (",".join(fault.id for fault in shot.faults if fault.in_force) or "none"),
        _pace(shot),
        "valid" if shot.valid else "NOT VALID: " + "; ".join(shot.reasons),
    ]
    return "  ".join(parts)


def _pace(shot: Snapshot) -> str:
    """How fast time passed since the look before, and whether it passes now; the rates are of that interval."""
    stands = "" if shot.running else "time stands still"
    late = f"  {len(shot.late)} nodes up to 2 s old" if shot.late else ""
    if not shot.dilation:
        return (stands or ("first look" if shot.number == 1 else "time stands still")) + late
    return f"dilation {shot.dilation:,.0f}" + (f", now {stands}" if stands else "") + late


def _head(name: str, shot: Snapshot, state: str) -> Text:
    head = Text.assemble((name, "bold"), "  ")
    if state:
        head.append(state + "  ", "bold reverse")
    head.append("valid  " if shot.valid else "NOT VALID  ", "" if shot.valid else _WRONG)
    head.append(f"{shot.at_ns / 1000:,.1f} us  {shot.goodput_bps / GBPS:,.1f} Gb/s  {_pace(shot)}  ")
    return head.append("; ".join(shot.reasons), _WRONG)


def _planes(shot: Snapshot, line_bps: float, cells: int, has_evs: bool) -> Iterator[Text]:
    states = f"{'good':>7}{'skip':>7}{'bad':>7}{'denied':>8}" if has_evs else ""
    yield Text(f"{'plane':6}{'':{cells}}{'Gb/s':>9}{states}{'no port':>8}", "bold")
    for number, plane in enumerate(shot.planes):
        line = Text(f"{number:<6}").append_text(bar(plane.goodput_bps / line_bps, cells))
        evs = plane.evs
        line.append(f"{plane.goodput_bps / GBPS:9,.1f}")
        if has_evs:
            line.append(f"{evs['good']:7}{evs['skip']:7}")
            line.append(f"{evs['assumed_bad']:7}", _WRONG if evs["assumed_bad"] else "").append(f"{evs['denied']:8}")
        yield line.append(f"{plane.ports_down:8}", _WRONG if plane.ports_down else "")


def _faults(shot: Snapshot) -> Iterator[Text]:
    for fault in sorted(shot.faults, key=lambda fault: not fault.in_force):
        yield _fault(fault)


def _fault(fault: FaultView) -> Text:
    line = Text.assemble(("fault ", _WRONG if fault.in_force else "dim"), f"{fault.id}  {fault.kind} ")
    line.append(" ".join(fault.targets[:3]) + (f" and {len(fault.targets) - 3} more" if len(fault.targets) > 3 else ""))
    if fault.end_ns is not None:
        line.append(f"  until {fault.end_ns / 1000:,.0f} us")
    return line.append("" if fault.in_force else "  to come").append(f"  of {fault.owner}" if fault.owner else "")


def _pauses(shot: Snapshot) -> Iterator[Text]:
    """A line for the reason of each tree of pauses."""
    for tree in shot.pause_trees:
        ends = " ".join(tree.leaves[:3]) + (f" and {len(tree.leaves) - 3} more" if len(tree.leaves) > 3 else "")
        line = Text.assemble(("pause ", _WRONG if tree.cycle else "bold"), root_says(tree))
        yield line.append(f"; {len(tree.steps)} directions, at the end {ends or 'nobody'}")


def _programs(shot: Snapshot) -> Iterator[Text]:
    for program in shot.programs:
        steps = f"  {program.steps} steps" if program.steps else ""
        steps += f"  {program.attempt} restart{'s' if program.attempt > 1 else ''}" if program.attempt else ""
        line = Text(f"work  {program.name}  {program.kind}{steps}  {program.running} of {program.ranks} ranks run")
        yield line.append(f"  {program.failed} FAILED", _WRONG) if program.failed else line


def _nodes(shot: Snapshot) -> Iterator[Text]:
    """Lines of the nodes that are not up."""
    nodes: dict[str, NicView | SwitchView] = {**shot.nics, **shot.switches}
    for name, node in nodes.items():
        if node.state != "up":
            yield Text.assemble((f"{node.state.upper():8}", _WRONG), name, "  ", " ".join(node.faults))


def _link(worst: Worst, shares: Mapping[str, float] | None) -> Text:
    """`shares`: of pauses, in the place of trims, which such a fabric has none of."""
    name, way, wrong = worst
    trims = f"{way.trims:8,}" if shares is None else f"{shares.get(name, 0.0):8.0%}"
    line = Text(f"{name:28}{way.utilisation:6.0%}{way.queue_bytes:10,}{way.marks:8,}{trims}{way.drops:8,}  ")
    return line.append(wrong, _WRONG)


def _nics(shot: Snapshot, count: int, has_evs: bool) -> Iterator[Text]:
    def bad(name: str) -> int:
        return sum(row["assumed_bad"] for row in shot.nics[name].evs)

    for name in sorted(shot.nics, key=lambda name: (-bad(name), -shot.nics[name].goodput_bps, name))[:count]:
        nic = shot.nics[name]
        line = Text(f"{name:10}{nic.goodput_bps / GBPS:9,.1f}{nic.qps:6}{nic.qp_errors:8}{nic.retransmits:8,}")
        down = nic.ports_up.count(False)
        if has_evs:
            line.append(f"{bad(name):9}", _WRONG if bad(name) else "")
        yield line.append(f"{len(nic.ports_up) - down:4} up", _WRONG if down else "")
