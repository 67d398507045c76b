"""How figures are shown: one flat name per headline figure, its unit, and what it should reach on two cores.

A script that compares two runs reads the flat names (`hop.pps_train15`); who wants to know more finds every repetition
under the section's own key.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from bench.measure import SPREAD_MAX, rounded


@dataclass(frozen=True, slots=True)
class Headline:
    """One row of the table."""

    name: str
    """`section.figure`, as in bench.json."""
    meaning: str
    unit: str = "/s"
    reach: float | None = None
    """What two cores should reach; None for figures that only explain others."""
    less_is_better: bool = False
    goal: float | None = None
    """What the project is to reach in the end; `reach` is what it must not fall behind."""


HEADLINES = (
    Headline("reference.hop_pps_train1", "bare forwarder, trains of 1"),
    Headline("reference.hop_pps_train4", "bare forwarder, trains of 4"),
    Headline("reference.hop_pps_train15", "bare forwarder, trains of 15"),
    Headline("reference.chain_pps", "bare chain of five processes"),
    Headline("hop.pps_train1", "switch, one CPU, trains of 1"),
    Headline("hop.pps_train4", "switch, one CPU, trains of 4"),
    Headline("hop.pps_train15", "switch, one CPU, trains of 15", reach=200_000, goal=380_000),
    Headline("hop.pps_step", "switch, one CPU, single steps of 1 us"),
    Headline("hop.core_pps", "switch core alone"),
    Headline("hop.ratio_train1", "switch / bare forwarder, trains of 1", ""),
    Headline("hop.ratio_train4", "switch / bare forwarder, trains of 4", ""),
    Headline("hop.ratio_train15", "switch / bare forwarder, trains of 15", ""),
    Headline("e2e.pps", "NIC to NIC, packed: data packets verified", reach=20_000, goal=100_000),
    Headline("e2e.pps_process_per_node", "the same, a process per daemon"),
    Headline("e2e.pps_cores", "the same, packed by cores", goal=100_000),
    Headline("e2e.cpu_us_per_packet_cores", "CPU of everything per packet, packed by cores", "us", less_is_better=True),
    Headline("e2e.gbps", "NIC to NIC, packed: payload, wall time", "Gb/s"),
    Headline("e2e.ratio", "NIC to NIC / bare chain", ""),
    Headline("e2e.cpu_us_per_packet", "NIC to NIC, packed: CPU of everything per packet", "us", less_is_better=True),
    Headline("e2e.cpu_share_nic", "of which the NIC daemons", ""),
    Headline("e2e.cpu_share_switch", "of which the switch daemons", ""),
    Headline("e2e.dilation", "NIC to NIC: effective dilation", "x", less_is_better=True),
    Headline("e2e.late_frames", "NIC to NIC: late frames", "", less_is_better=True),
    Headline("e2e.roce_pps", "NIC to NIC, packed, with RoCE over lossless switches"),
    Headline("e2e.roce_share", "RoCE / MRC", "", 0.33),
    Headline("e2e.roce_cpu_us_per_packet", "RoCE: CPU of everything per packet", "us", less_is_better=True),
    Headline("fabric.pps_process_per_node", "8 NICs, a process per daemon: data packets verified"),
    Headline("fabric.pps_packed", "8 NICs, packed by plane: data packets verified", reach=8_000, goal=50_000),
    Headline("fabric.pps_cores", "8 NICs, packed by cores: data packets verified", goal=50_000),
    Headline("fabric.cpu_us_per_packet_cores", "8 NICs, packed by cores: CPU per packet", "us", less_is_better=True),
    Headline("fabric.gbps_packed", "8 NICs, packed: payload, wall time", "Gb/s"),
    Headline("fabric.cpu_us_per_packet", "8 NICs, packed: CPU of everything per packet", "us", less_is_better=True),
    Headline("fabric.cpu_share_nic", "of which the NIC daemons", ""),
    Headline("fabric.cpu_share_switch", "of which the switch daemons", ""),
    Headline("fabric.dilation_process_per_node", "effective dilation, a process per daemon", "x", less_is_better=True),
    Headline("fabric.dilation_packed", "effective dilation, packed", "x", less_is_better=True, goal=4_000),
    Headline("fabric.dilation_cores", "effective dilation, packed by cores", "x", less_is_better=True, goal=4_000),
    Headline("fabric.late_frames", "8 NICs: late frames", "", less_is_better=True),
    Headline("launch.daemons", "daemons launched", ""),
    Headline("launch.seconds", "from the command to every daemon ready", "s", reach=3, less_is_better=True),
    Headline("launch.pss_mb_per_switch", "memory of a switch daemon after a scrape", "MB", 6, less_is_better=True),
    Headline("launch.seconds_packed", "the same, packed by plane", "s", less_is_better=True),
    Headline("launch.seconds_cores", "the same, packed by cores", "s", less_is_better=True),
    Headline("launch.seconds_100", "until 100 daemons are ready, in the packing of auto", "s", None, True, 1),
    Headline("launch.seconds_512", "until 512 daemons are ready, in the packing of auto", "s", None, True, 6),
    Headline("launch.pss_mb_per_nic", "memory of a NIC daemon after a scrape", "MB", less_is_better=True),
    Headline("crowd.scrape_wall_s", "all metrics of 608 busy daemons, by cores", "s", 5, True),
    Headline("crowd.scrape_agent_cpu_s", "CPU of the agent for it", "s"),
    Headline("crowd.scrape_daemons_cpu_s", "CPU of the daemons for one at rest, all processes together", "s"),
    Headline("crowd.status_wall_s", "/status of them", "s", 1, True),
    Headline("crowd.look_wall_s", "a look of the live map at them", "s", 0.5, True),
    Headline("crowd.look_cpu_s", "CPU of the agent and the map for it", "s"),
    Headline("hosts.daemons", "daemons launched over four hosts", ""),
    Headline("hosts.first_seconds", "from the command to every daemon ready, first start", "s", 10, True),
    Headline("hosts.seconds", "the same, later starts", "s", 10, True),
    Headline("hosts.down_seconds", "until nothing is left", "s", less_is_better=True),
    Headline("hosts.cores_at_rest", "CPU of everything on all hosts at rest", "cores", less_is_better=True),
    Headline("scrape.counters_us", "a NIC with 64 QPs x 256 EVs says what it counts", "us", 1000, less_is_better=True),
    Headline("scrape.glance_us", "the same, in short", "us", 100, less_is_better=True),
    Headline("scrape.ratio_walk", "all it counts / a walk over its EVs", "", less_is_better=True),
    Headline("scrape.render_us", "the agent makes a page of it", "us", less_is_better=True),
    Headline("sim.pps", "simulator, one CPU: data packets", goal=100_000),
    Headline("sim.roce_pps", "the same with RoCE over lossless switches"),
    Headline("sim.roce_share", "RoCE / MRC", "", 0.33),
)


def value_of(document: Mapping[str, Any], name: str) -> float | None:
    """A figure by its flat name; None when its section did not run or failed."""
    section, figure = name.split(".")
    value = document.get(section, {}).get(figure)
    return value if isinstance(value, int | float) else None


def ratios(document: Mapping[str, Any]) -> dict[str, float]:
    """Our figures over those of the bare reference, of this very run."""
    pairs = {f"hop.ratio_train{n}": (f"hop.pps_train{n}", f"reference.hop_pps_train{n}") for n in (1, 4, 15)}
    pairs["e2e.ratio"] = ("e2e.pps", "reference.chain_pps")
    found = {}
    for name, (ours, bare) in pairs.items():
        above, below = value_of(document, ours), value_of(document, bare)
        if above is not None and below:
            found[name] = rounded(above / below)
    return found


def flat(document: dict[str, Any]) -> dict[str, float]:
    """Every headline figure that was measured under its flat name; ratios are put into their sections too."""
    for name, ratio in ratios(document).items():
        section, figure = name.split(".")
        document[section][figure] = ratio
    values = {headline.name: value_of(document, headline.name) for headline in HEADLINES}
    return {name: value for name, value in values.items() if value is not None}


def _shown(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 or float(value).is_integer() else f"{value:g}"


def _verdict(headline: Headline, value: float) -> str:
    if headline.reach is None:
        return ""
    reached = value <= headline.reach if headline.less_is_better else value >= headline.reach
    bound = f"{'up to' if headline.less_is_better else 'at least'} {_shown(headline.reach)}"
    return f"[green]{bound}[/]" if reached else f"[red]missed: {bound}[/]"


def share_of_goal(headline: Headline, value: float) -> float | None:
    """How much of the goal a figure reaches, 1 for all of it; None without a goal."""
    if headline.goal is None:
        return None
    return headline.goal / value if headline.less_is_better else value / headline.goal


def _goal(headline: Headline, value: float) -> str:
    share = share_of_goal(headline, value)
    return "" if share is None or headline.goal is None else f"{share:.0%} of {_shown(headline.goal)}"


def _spread(document: Mapping[str, Any], name: str) -> str:
    section, figure = name.split(".")
    spread = document.get(section, {}).get("detail", {}).get(figure, {}).get("spread")
    if spread is None:
        return ""
    shown = f"{spread:.0%}"
    return f"[yellow]{shown}[/]" if spread > SPREAD_MAX else shown


def render(document: Mapping[str, Any]) -> Table:
    """The table of one run."""
    table = Table(title="4096 bytes of payload, 100 Gb/s ports, hops of 1 us, ECN and ICRC on")
    for title, side in (
        ("", "left"),
        ("figure", "left"),
        ("", "right"),
        ("", "left"),
        ("+-", "right"),
        ("reach", "left"),
        ("goal", "left"),
    ):
        table.add_column(title, justify=side)  # type: ignore[arg-type]
    previous = ""
    for headline in HEADLINES:
        value = value_of(document, headline.name)
        if value is None:
            continue
        section = headline.name.split(".")[0]
        if previous and section != previous:
            table.add_section()
        previous = section
        spread = _spread(document, headline.name)
        table.add_row(headline.name, headline.meaning, _shown(value), headline.unit, spread, _verdict(headline, value),
                      _goal(headline, value))  # fmt: skip
    return table
