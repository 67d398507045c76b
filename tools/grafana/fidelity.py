"""The board "Emulator fidelity": may the figures be believed, how fast is the emulation, and what does it cost?

The only board with rates per second of wall time: it is about the machine, and not about the fabric.
"""

from tools.grafana import common, look, uids
from tools.grafana.board import Board, Row
from tools.grafana.panels import Column, Panel, figure, lines, spans, table
from tools.grafana.query import FABRIC, NODE, Query, highest, rate, series, share, top, total

_SHOWN = 12


def _figures() -> list[Panel]:
    dead = f"sum by (fabric) (1 - {series('mrc_agent_node_up')})"
    return [
        figure("Faithful", "May the figures be believed?", series("mrc_agent_valid"), meanings=common.YES_NO,
               limits=look.ONE_IS_GOOD),
        figure("Time goes on", "Is a rate of 0 a fault, or does the fabric sleep?", series("mrc_agent_time_running"),
               meanings=((0, "asleep", look.QUIET), (1, "yes", look.GOOD))),
        figure("Dilation", "How many wall seconds does a fabric second take, over the whole run?",
               series("mrc_agent_dilation_effective"), curve=True, decimals=0),
        figure("Fabric time", "How old is the fabric?", series("mrc_agent_fabric_time_seconds_total"), unit="s"),
        figure("Awake", "How long has it worked for that?", series("mrc_agent_awake_seconds_total"), unit="s"),
        figure("Daemons", "How many run?", series("mrc_agent_daemons_alive")),
        figure("Dead nodes", "Is any of them gone?", dead, limits=look.NONE_IS_GOOD),
        figure("Version", "What is running?", series("mrc_agent_build_info"),
               legend="{{system}}, {{version}}, Python {{python}}"),
    ]  # fmt: skip


def _time() -> list[Panel]:
    return [
        lines("Dilation now", "How much slower than life is it? Wall seconds per fabric second, sleep left out; beside "
              "it the fastest pace that was asked for (0: as fast as the machine goes).",
              Query(f"{rate('mrc_agent_awake_seconds_total')} / ({rate('mrc_agent_fabric_time_seconds_total')} > 0)",
                    "dilation"),
              Query(series("mrc_agent_dilation_nominal"), "asked for")),
        spans("Time", "When did the fabric sleep, and when was it not faithful any more?",
              Query(series("mrc_agent_time_running"), "time goes on"), Query(series("mrc_agent_valid"), "faithful"),
              meanings=((0, "no", look.SKIP), (1, "yes", look.GOOD))),
    ]  # fmt: skip


def _harm() -> list[Panel]:
    def count(title: str, question: str, *metrics: tuple[str, str]) -> Panel:
        asked = (Query(total("", series(metric)), legend) for metric, legend in metrics)
        return lines(title, question, *asked)

    return [
        count("Frames lost or late", "Did the machine harm the fabric? Any host drop makes a run not valid, and so do "
              "more than one late frame in a thousand.",
              ("mrc_host_drops_total", "lost by the host"), ("mrc_late_frames_total", "late"),
              ("mrc_bad_frames_total", "not of this fabric")),
        lines("Greatest lateness", "By how much at the worst? In fabric time, since the start.",
              Query(top(_SHOWN, highest("mrc_late_seconds_max", "node", NODE)), "{{node}}"), unit="s"),
        count("Not sent", "Could the kernel not take what was sent, or was nobody there?",
              ("mrc_unsent_trains_total", "not taken"), ("mrc_refused_sends_total", "refused"),
              ("mrc_late_commands_total", "commands too late")),
        lines("Control channel", "What is dropped on the control channel, and why?",
              Query(total("reason", series("mrc_control_drops_total")), "{{reason}}")),
    ]  # fmt: skip


def _cost() -> list[Panel]:
    frames, trains = (total("direction", rate(f"mrc_{what}_total", NODE)) for what in ("frames", "trains"))
    return [
        lines("CPU", "Which processes does the emulation spend its CPU on? Packed nodes each show the whole process.",
              Query(top(_SHOWN, total("node", rate("mrc_cpu_seconds_total", NODE))), "{{node}}"), unit="percentunit"),
        lines("Frames", "How much does the emulation carry, per second of wall time?",
              Query(frames, "{{direction}}"), unit="pps"),
        lines("Frames per train", "Do frames travel in long trains, or does each one cost a system call?",
              Query(share(frames, trains, "direction"), "{{direction}}")),
        lines("Ticks", "How finely is time cut? Steps per second of wall time.",
              Query(top(_SHOWN, total("node", rate("mrc_ticks_total", NODE))), "{{node}}"), unit="ops"),
    ]  # fmt: skip


def _watching() -> list[Panel]:
    return [
        lines("Time of a scrape", "Does watching cost much, and do daemons answer in time?",
              Query(top(_SHOWN, f"scrape_duration_seconds{{{FABRIC}}}"), "{{instance}}"), unit="s"),
        lines("Requests to daemons", "How often are daemons asked?",
              Query(top(_SHOWN, total("node", rate("mrc_control_requests_total", NODE))), "{{node}}"), unit="reqps"),
        spans("Targets that do not answer", "Whom can Prometheus not reach?",
              Query(f"up{{{FABRIC}}} == 0", "{{instance}}"), meanings=common.UP_DOWN),
        lines("Events nobody fetched", "Is the event log complete?",
              Query(total("", series("mrc_nic_events_lost_total")), "lost")),
    ]  # fmt: skip


def _nodes() -> list[Panel]:
    def number(name: str, metric: str, unit: str = "short", limits: look.Json | None = None) -> Column:
        return Column(name, expr=highest(metric, "node", NODE), unit=unit, limits=limits)

    return [
        table(
            "Nodes",
            "How is each daemon?",
            Column("Node", "node"),
            number("Lives", "mrc_incarnation"),
            number("Fabric time", "mrc_fabric_time_seconds_total", "s"),
            number("CPU", "mrc_cpu_seconds_total", "s"),
            number("Late", "mrc_late_frames_total", limits=look.NONE_IS_GOOD),
            number("Lost by the host", "mrc_host_drops_total", limits=look.NONE_IS_GOOD),
            number("Receive buffer", "mrc_receive_buffer_bytes", "bytes"),
            order="CPU",
        )
    ]


BOARD = Board(
    uids.FIDELITY,
    "Emulator fidelity",
    "May the figures be believed, how fast is the emulation, and what does it cost? Rates are of wall time.",
    (
        Row("At a glance", _figures()),
        Row("Time", _time()),
        Row("Harm done by the machine", _harm()),
        Row("Cost", _cost()),
        Row("Watching", _watching()),
        Row("Nodes", _nodes()),
    ),
    nodes="mrc_fabric_time_seconds_total",
    planes=False,
)
