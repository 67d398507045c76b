"""Counters as a daemon would answer them, for tests that render them."""

from dataclasses import asdict
from typing import Any

from mrcfabric.link_port import Fidelity

PROCESS: dict[str, Any] = {
    "fidelity": {
        **asdict(Fidelity()), "refused": 0, "unsent_trains": 0, "receive_buffer_bytes": 8 << 20,
    },
    "control": {"requests": 3, "duplicates": 0, "refused": 0, "drops": {"bad_mac": 2}},
    "process": {"now_ns": 5_000_000, "cpu_ns": 7_000_000, "incarnation": 1},
}  # fmt: skip
"""All but the core's."""


def samples_of(rendered: bytes) -> dict[str, float]:
    """`name{labels}` -> value of every line of an exposition."""
    lines = [line for line in rendered.decode().splitlines() if not line.startswith("#")]
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}
