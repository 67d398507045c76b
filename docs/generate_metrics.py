"""Writes METRICS.md from the definitions: `python docs/generate_metrics.py > docs/METRICS.md`."""

from mrcfabric.metrics import markdown
from orchestrator.agent.metrics import SECTIONS

HEAD = """# Metrics

Generated from the definitions in `mrcfabric/metrics.py`, `nicd/metrics.py`, `nicd/metrics_host.py`,
`switchd/metrics.py` and `orchestrator/agent/metrics.py`. The agent serves `/metrics/NODE` for every node, its own
metrics at `/metrics`, and the list of them all at `/sd` (http_sd) and in `targets.json` of the run folder (file_sd).

Every series of a node has the labels `fabric`, `plane` and `node`. `plane` is empty where a NIC speaks for all its
planes; the tables name it among the labels where a NIC has one series per plane. The agent's series have `fabric` and
the labels named. Times are seconds of fabric time unless they say CPU or wall. There is never a label for a single EV,
PSN or QP: `mrcfabric ev list` and the control channel tell of those.

Wall time is not fabric time: a rate per second of fabric time is the rate of the series over the rate of
`mrc_fabric_time_seconds_total`, which is 0 while a fabric sleeps. Goodput in bits per second is the rate of
`mrc_nic_placed_bytes_total`, times eight, over that. The utilisation of a port is the rate of its bytes and of 38 for
each of its packets (the framing), over that, over the port's rate in bytes. The effective dilation is the rate of
`mrc_agent_awake_seconds_total` over that of `mrc_agent_fabric_time_seconds_total`. The rules that ship record series of
these and other figures (MONITORING.md).

Counters of a node begin at 0 in each of its lives (`mrc_incarnation`), and a dead node has no series. What the whole
fabric has counted since its launch, all lives included, is `mrc_agent_counted_total`.

A histogram NAME has the series `NAME_bucket` (with the label `le`), `NAME_sum` and `NAME_count`. Buckets of durations
end at powers of two of one nanosecond; the shortest and the longest of a NIC's round trips are `2^10` and `2^24` ns.
"""


def document() -> str:
    """The whole reference."""
    return f"{HEAD}\n{markdown(SECTIONS)}"


if __name__ == "__main__":
    print(document(), end="")
