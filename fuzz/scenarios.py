"""Scenario files and the flags on top of them: `scenario`.

Whatever the bytes, there comes out a plan or one line of complaint.
"""

import os

from fuzz.messages import check_line
from mrcfabric.errors import ConfigError
from orchestrator.scenario.resolve import load, resolve
from orchestrator.yamlfile.document import override, parse

SCENARIO = b"""\
name: fuzz
fabric: {planes: 2, t0_per_plane: 2, t1_per_plane: 2, nics_per_t0: 2, evs_per_qp: 16, reserve_evs_per_qp: 4}
length: 100rtt
workload: [{name: w, kind: training, steps: 3, bucket_bytes: 64KiB}]
method:
  - {name: a, at: 1rtt, for: 9rtt, fault: flap, period: 2rtt, selector: {links: "p*-t0-0~*"}, mode: fixed, value: 2}
  - {name: b, for: 9rtt, chaos: {every: 1rtt, at_once_max: 2, faults: [{fault: loss, for: 2rtt, mode: one}]}}
  - {name: c, when: {measure: steps, at_least: 2}, fault: gray, for: 5rtt, ramp: {to: {toxicity: 3%}}}
expect: [{measure: goodput, during: a, bin: 1rtt, at_least: 10%}]
"""


def scenario(data: bytes) -> None:
    """A scenario file, and the same text as a flag on top of a good one: a plan, or one line of complaint."""
    fd = os.memfd_create("fuzz")
    try:
        os.write(fd, data)
        plan = load(f"/proc/self/fd/{fd}")
    except ConfigError as error:
        check_line(error)
    else:
        assert all(fault.start_ns >= plan.begin_ns for fault in plan.faults)
    finally:
        os.close(fd)
    try:
        document = parse("fuzz", SCENARIO.decode())
        override(document, data.decode("utf-8", "surrogateescape"))
        resolve(document)
    except ConfigError as error:
        check_line(error)


def scenario_seeds() -> list[bytes]:
    """A file, parts of one, and flags that mean something."""
    return [
        SCENARIO, b"name: a\n", b"name: a\nmethod: [{name: b, fault: loss, every: 300rtt, for: 1rtt, turns: anew}]\n",
        b"seed=3", b"method.a.period=1us", b"fabric.planes=4", b"workload.w.ranks=[h000, h001]", b"expect.0.bin=2rtt",
    ]  # fmt: skip
