"""Writes METRICS.md from the definitions: `python docs/generate_metrics.py > docs/METRICS.md`."""

from mrcfabric.metrics import COMMON, PREFIX, markdown
from nicd import metrics as nic
from orchestrator.agent import OWN_METRICS
from orchestrator.link_desk import LINK_METRICS
from switchd import metrics as switch

HEAD = """# Metrics

Generated from the definitions in `mrcfabric/metrics.py`, `nicd/metrics.py`, `switchd/metrics.py`,
`orchestrator/agent.py` and `orchestrator/link_desk.py`. The agent serves `/metrics/NODE` for every node, its own gauges
at `/metrics`, and the list of them all at `/sd` (http_sd) and in `targets.json` of the run folder (file_sd).

Every series has the labels `fabric`, `plane` and `node`. `plane` is empty where a NIC speaks for all its planes; the
tables name it among the labels where a NIC has one series per plane. Times are seconds of fabric time unless they say
CPU. There is never a label for a single EV, PSN or QP: ask the control channel for those.

Goodput in bits per second of fabric time is the rate of `mrc_nic_placed_bytes_total`, times eight, over the rate of
`mrc_fabric_time_seconds_total`; the effective dilation is one over the rate of the latter.
"""

AGENT = """## The agent

The label `fabric`, and those named.

| Metric | Kind | Labels | Meaning |
|---|---|---|---|
"""


def document() -> str:
    """The whole reference."""
    sections = {"Every daemon": COMMON, "NICs": nic.DEFINITIONS, "Switches": switch.DEFINITIONS}
    own = [*((name, "gauge", "", meaning) for name, meaning in OWN_METRICS), *LINK_METRICS]
    return f"{HEAD}\n{markdown(sections)}\n{AGENT}" + "".join(
        f"| `{PREFIX}{name}` | {kind} | {labels} | {meaning} |\n" for name, kind, labels, meaning in own
    )


if __name__ == "__main__":
    print(document(), end="")
