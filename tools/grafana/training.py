"""The board "Training steps": progress of jobs, length of steps, how uneven steps are, whether the bytes are right.

Times are of fabric time. The program defines a step: a pass of an exchange, a round. The variable `node` narrows the
board to ranks at some NICs.
"""

from tools.grafana import common, look, uids
from tools.grafana.board import Board, Row
from tools.grafana.panels import Column, Panel, figure, heat, lines, table
from tools.grafana.query import NODE, Query, bits, flow, level, quantile, rate, share, spread, top, total

JOB = "program, kind"
_STEP = "mrc_nic_program_step_seconds"
_JOB_LEGEND = "{{program}}"


def _mean(by: str) -> str:
    return share(total(by, rate(f"{_STEP}_sum", NODE)), total(by, rate(f"{_STEP}_count", NODE)), by)


def _ranks(state: str) -> str:
    return level("mrc_nic_programs", "", NODE, f'state="{state}"')


def _figures() -> list[Panel]:
    return [
        figure("Ranks running", "Is work going on?", _ranks("running")).wide(4),
        figure("Ranks done", "How many have finished?", _ranks("done")).wide(4),
        figure("Ranks failed", "Has a job failed?", _ranks("failed"), limits=look.NONE_IS_GOOD).wide(4),
        figure("Step time", "What does a step take? Mean over all jobs and ranks.", _mean(""), unit="s", curve=True
               ).wide(4),
        figure("Bytes checked", "Is what arrives being checked?",
               level("mrc_nic_program_verified_bytes_total", "", NODE),
               unit="bytes").wide(4),
        figure("Wrong bytes", "Has the fabric delivered anything wrong? There is no fault for which this may happen.",
               level("mrc_nic_program_wrong_bytes_total", "", NODE), unit="bytes", limits=look.NONE_IS_GOOD).wide(4),
    ]  # fmt: skip


def _steps() -> list[Panel]:
    def point(share_of_all: float, name: str) -> Query:
        return Query(quantile(share_of_all, _STEP, f"fabric, {JOB}", NODE), f"{_JOB_LEGEND} {name}")

    return [
        lines("Step time", "How much longer does a step take under a fault? Median and 99th percentile over the ranks.",
              point(0.5, "median"), point(0.99, "99 %"), unit="s"),
        lines("Steps per second of fabric time", "How fast does each job get on? A rank's, on average.",
              Query(share(flow("mrc_nic_program_steps_total", JOB, NODE),
                          f"count by (fabric, {JOB}) ({rate('mrc_nic_program_steps_total', NODE)})", JOB),
                    _JOB_LEGEND), unit="ops"),
        heat("Spread of step times", "How uneven are steps? A second band is what a fault or a straggler adds.",
             spread(_STEP, NODE), "s"),
        lines("Slowest ranks", "Which rank do the others wait for? Mean step time of the twelve slowest.",
              Query(top(12, _mean(f"node, {JOB}")), f"{{{{node}}}} {_JOB_LEGEND}"), unit="s"),
    ]  # fmt: skip


def _traffic() -> list[Panel]:
    return [
        lines("Sent and acknowledged", "How much does each job send?",
              Query(bits("mrc_nic_program_sent_bytes_total", JOB, NODE), _JOB_LEGEND), unit="bps"),
        lines("Checked", "How fast are results compared with what they have to be?",
              Query(bits("mrc_nic_program_verified_bytes_total", JOB, NODE), _JOB_LEGEND), unit="bps"),
        common.goodput(),
        common.faults_over_time(),
    ]  # fmt: skip


def _jobs() -> list[Panel]:
    def sums(name: str, metric: str, unit: str = "short", limits: look.Json | None = None) -> Column:
        return Column(name, expr=level(metric, JOB, NODE), unit=unit, limits=limits)

    return [
        table(
            "Jobs",
            "How is each job?",
            Column("Job", "program"),
            Column("Kind", "kind"),
            sums("Steps of all ranks", "mrc_nic_program_steps_total"),
            sums("Sent", "mrc_nic_program_sent_bytes_total", "bytes"),
            sums("Checked", "mrc_nic_program_verified_bytes_total", "bytes"),
            sums("Wrong", "mrc_nic_program_wrong_bytes_total", "bytes", look.NONE_IS_GOOD),
            order="Steps of all ranks",
        )
    ]


BOARD = Board(
    uids.TRAINING,
    "Training steps",
    "How do jobs get on, what does a step take, how uneven are steps, are the bytes right? In fabric time.",
    (
        Row("At a glance", _figures()),
        Row("Steps", _steps()),
        Row("Traffic", _traffic()),
        Row("Jobs", _jobs()),
    ),
    nodes="mrc_nic_windows",
    planes=False,
)
