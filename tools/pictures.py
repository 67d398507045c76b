"""The three drawings of README.md and docs/ARCHITECTURE.md: `python -m tools.pictures --write`.

Owns what is in them and where it stands. Nothing is measured here: they show which part hands what to which.
"""

import argparse
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parents[1] / "docs" / "images"
INK, PAPER, LINE = "#1f2933", "#ffffff", "#52606d"
FILLS: Final = {"nic": "#dbeafe", "switch": "#fef3c7", "agent": "#dcfce7", "plain": "#f1f5f9"}


class Drawing:
    """An SVG of boxes and arrows; all lengths in pixels."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self._parts = [
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img" '
                f'font-family="system-ui, sans-serif" font-size="13" fill="{INK}">'
            ),
            f"<title>{escape(title)}</title>",
            (
                '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
                f'orient="auto"><path d="M0 0 8 4 0 8z" fill="{LINE}"/></marker></defs>'
            ),
            f'<rect width="{width}" height="{height}" fill="{PAPER}"/>',
        ]

    def box(self, x: int, y: int, width: int, height: int, kind: str, lines: Sequence[str]) -> None:
        """A box with lines of text in its middle, the first in bold."""
        self._parts.append(
            f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="5" fill="{FILLS[kind]}" stroke="{LINE}"/>'
        )
        top = y + height / 2 - 8 * (len(lines) - 1) + 4.5
        for number, line in enumerate(lines):
            weight = ' font-weight="600"' if number == 0 else ' font-size="11.5"'
            place = f'x="{x + width / 2:g}" y="{top + 16 * number:g}"'
            self._parts.append(f'<text {place} text-anchor="middle"{weight}>{escape(line)}</text>')

    def text(self, x: float, y: float, words: str, anchor: str = "start") -> None:
        """Words beside the boxes."""
        self._parts.append(f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="11.5">{escape(words)}</text>')

    def arrow(self, *points: tuple[float, float], both: bool = False, plain: bool = False) -> None:
        """A line through points, with a tip at its end, at both ends or at none."""
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        tips = "" if plain else ' marker-end="url(#tip)"' + (' marker-start="url(#tip)"' if both else "")
        self._parts.append(f'<polyline points="{path}" fill="none" stroke="{LINE}"{tips}/>')

    def done(self) -> str:
        """The text of the file."""
        return "\n".join([*self._parts, "</svg>"]) + "\n"


def fabric() -> str:
    """Planes, NICs and the agent."""
    pic = Drawing(860, 372, "Planes of switches, NICs with a port in each plane, and the agent beside them")
    for left, name in ((210, "plane 0"), (400, "plane 1"), (650, "plane 7")):
        pic.box(left, 12, 170, 168, "plain", [""])
        pic.text(left + 85, 28, name, "middle")
        t1s, t0s = range(left + 8, left + 168, 40), (left + 25, left + 95)
        for t0 in t0s:
            for t1 in t1s:
                pic.arrow((t0 + 25, 136), (t1 + 17, 72), plain=True)
        for t1 in t1s:
            pic.box(t1, 42, 34, 30, "switch", ["T1"])
        for t0 in t0s:
            pic.box(t0, 136, 50, 30, "switch", ["T0"])
    pic.text(610, 96, "...", "middle")
    for place in range(6):
        left = 210 + place * 104
        pic.box(left, 262, 90, 44, "nic", [f"NIC h00{place}" if place < 5 else "NIC h007", "8 ports"])
        for target in (235 if place < 3 else 305, 425 if place < 3 else 495, 675 if place < 3 else 745):
            pic.arrow((left + 45, 262), (target + 25, 166), plain=True)
    pic.text(520, 330, "every NIC and every switch is a process; every line is real UDP, both ways", "middle")
    pic.text(
        520, 350, "rank processes beside the NICs share memory with them, as applications do by RDMA verbs", "middle"
    )
    pic.box(12, 60, 160, 76, "agent", ["agent", "starts daemons, breaks", "parts, collects metrics"])
    pic.arrow((172, 98), (206, 98), both=True)
    pic.text(92, 30, "mrcfabric up, run, status ...", "middle")
    pic.arrow((92, 38), (92, 58))
    pic.box(12, 178, 160, 44, "plain", ["watchers", "Prometheus, map, scripts"])
    pic.arrow((92, 178), (92, 138))
    return pic.done()


def packet() -> str:
    """The drawing of a packet's way, step by step."""
    pic = Drawing(
        860,
        330,
        "The way of a packet: from the sender's program through switches into the receiver's memory, and its SACK",
    )
    boxes = (
        (12, "nic", ["post a write", "programs/host, verbs"]),
        (184, "nic", ["take a turn", "core/scheduler, qp"]),
        (356, "nic", ["cut packets, pick EVs", "core/requestor, ev_profile"]),
        (528, "nic", ["queue, link, faults", "mrcfabric/egress"]),
        (700, "plain", ["UDP", "drive, link_port"]),
    )
    for left, kind, lines in boxes:
        pic.box(left, 20, 150, 50, kind, lines)
    for left in (162, 334, 506, 678):
        pic.arrow((left, 45), (left + 20, 45))
    pic.arrow((775, 70), (775, 118))
    pic.box(700, 120, 150, 62, "switch", ["switch: next uSID", "switchd/core/switch", "marks, trims: egress"])
    pic.text(690, 156, "up to three switches,", "end")
    pic.text(690, 171, "UDP between them", "end")
    pic.arrow((775, 182), (775, 230))
    back = (
        (700, "nic", ["read and check", "core/nic, wire/fastpath"]),
        (528, "nic", ["place the payload", "core/responder, memory"]),
        (356, "nic", ["acknowledge", "core/sack, reverse_set"]),
        (184, "nic", ["free, judge, resend", "core/requestor, recovery"]),
        (12, "nic", ["completion", "core/events, verbs"]),
    )
    for left, kind, lines in back:
        pic.box(left, 232, 150, 50, kind, lines)
    for left in (700, 528):
        pic.arrow((left, 257), (left - 20, 257))
    pic.arrow((356, 257), (336, 257))
    pic.arrow((184, 257), (164, 257))
    pic.text(346, 305, "back over switches, in the control class, on a path that the receiver chose", "middle")
    pic.arrow((259, 232), (259, 72))
    pic.text(268, 150, "SACKs open windows, EVs change state:")
    pic.text(268, 166, "core/plane_windows, nscc, ev_state")
    return pic.done()


def fault() -> str:
    """The drawing of a fault's way, step by step."""
    pic = Drawing(
        860, 300, "The way of a fault: said, resolved, put into the table, told to daemons, found out by NICs"
    )
    top = (
        (12, "plain", ["said", "scenario, fault add, script"]),
        (226, "agent", ["resolved to names", "faults/selectors, host_map"]),
        (440, "agent", ["injected, checked once", "fabric/fault_injector"]),
        (654, "agent", ["who is told what, when", "faults/table, effects, lives"]),
    )
    for left, kind, lines in top:
        pic.box(left, 20, 190, 54, kind, lines)
    for left in (202, 416, 630):
        pic.arrow((left, 47), (left + 22, 47))
    pic.arrow((749, 74), (749, 118))
    bottom = (
        (654, "agent", ["lives, deaths, scripts", "fabric/lifecycle, delivery"]),
        (440, "switch", ["at its instant", "SetImpairment, SetCarrier"]),
        (226, "nic", ["silence is noticed", "core/recovery, ev_state"]),
        (12, "nic", ["other paths, probes", "core/ev_profile, ev_probing"]),
    )
    for left, kind, lines in bottom:
        pic.box(left, 120, 190, 54, kind, lines)
    for left in (654, 440, 226):
        pic.arrow((left, 147), (left - 22, 147))
    pic.text(642, 112, "control channel", "middle")
    pic.box(
        440,
        220,
        404,
        54,
        "agent",
        ["ends with its owner", "its lease (agent/leases), its time to live, or heal: back to the injector"],
    )
    pic.arrow((535, 220), (535, 200), (425, 200), (425, 92), (500, 92), (500, 76))
    return pic.done()


DRAWINGS: Final = {"fabric.svg": fabric, "packet.svg": packet, "fault.svg": fault}


def main() -> int:
    """Write the drawings, or name those that are stale."""
    parser = argparse.ArgumentParser(prog="python -m tools.pictures", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write them")
    wanted = {FOLDER / name: draw() for name, draw in DRAWINGS.items()}
    stale = [path for path, text in wanted.items() if not path.is_file() or path.read_text() != text]
    if parser.parse_args().write:
        for path in stale:
            path.write_text(wanted[path])
        return 0
    for path in stale:
        print(f"stale: {path.relative_to(FOLDER.parents[1])}")
    return bool(stale)


if __name__ == "__main__":
    raise SystemExit(main())
