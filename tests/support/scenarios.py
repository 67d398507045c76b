"""Scenario files for tests: a small one that uses most words of the language, and how to read one from a text."""

from collections.abc import Sequence
from typing import Any

from mrcfabric.errors import ConfigError
from orchestrator.scenario.plan import Plan
from orchestrator.scenario.resolve import resolve
from orchestrator.yamlfile.document import parse

SMALL = """\
name: small
fabric: {planes: 2, t0_per_plane: 2, t1_per_plane: 2, nics_per_t0: 2, evs_per_qp: 16, reserve_evs_per_qp: 4}
seed: paper
length: 400rtt
workload:
  - {name: pair, kind: p2p, ranks: [h000, h002]}
"""

WHOLE = """\
name: whole
description: Most words of the language.
fabric: {planes: 4, t0_per_plane: 2, t1_per_plane: 4, nics_per_t0: 4}
seed: paper
length: 400rtt
settle: 10rtt
look: 2rtt
nominal_dilation: 10000
workload:
  - {name: train, kind: training, ranks: all, steps: 30, buckets: 8, bucket_bytes: 1MiB, compute: 20us, jitter: 5us}
  - {name: pair, kind: p2p, ranks: [h000, h007], begin: 5rtt}
steady_state:
  - {measure: goodput, relative_to: line, at_least: 10%}
method:
  - {name: flaps, at: 20rtt, for: 100rtt, fault: flap, period: 10rtt, duty: 0.5, jitter: 1rtt,
     selector: {links: "p*-t0-0~p*-t1-*"}, mode: fixed, value: 4, direction: both}
  - {name: drops, at: 1s, every: 2s, times: 3, for: 500ms, fault: loss, toxicity: 1%,
     selector: {tier: t0-t1, plane: 2}, mode: one}
  - {name: ports, at: 10rtt, every: 10rtt, times: 4, fault: nic_port_down, selector: {nodes: h001},
     mode: one, turns: next}
  - {name: creep, at: 50rtt, for: 200rtt, fault: delay, delay: 1us, ramp: {to: {delay: 10us}, steps: 4}, mode: one}
  - {name: kill, when: {measure: steps, of: train, at_least: 20}, for: 50rtt, fault: switch_reboot,
     selector: {tier: t1}, mode: one, times: 2}
  - name: storm
    at: 50rtt
    for: 200rtt
    chaos:
      every: 20rtt
      at_once_max: 2
      faults:
        - {fault: loss, toxicity: 3%, for: {least: 5rtt, most: 20rtt}, selector: {tier: t0-t1}, mode: one}
        - {fault: link_down, for: 10rtt, mode: one, weight: 2}
expect:
  - {measure: goodput, during: flaps, bin: 200ms, relative_to: baseline, at_least: 0.5}
  - {measure: recovery_rtts, after: kill, at_most: 20rtt}
  - {measure: step_time, of: train, reduce: p99, at_most: 1ms}
  - {measure: bytes_verified, at_least: 1MiB}
  - {measure: qp_errors, at_most: 0}
"""


def plan_of(text: str, **how: Any) -> Plan:
    """The plan of a scenario's text."""
    return resolve(parse("some.yaml", text), **how)


def small_plan(*lines: str, **how: Any) -> Plan:
    """The plan of the small scenario with lines behind it."""
    return plan_of(SMALL + "".join(f"{line}\n" for line in lines), **how)


def complaint(lines: Sequence[str], base: str = SMALL) -> str:
    """What is said of the small scenario with these lines behind it; "" when it is good."""
    try:
        plan_of(base + "".join(f"{line}\n" for line in lines))
    except ConfigError as error:
        return str(error)
    return ""
