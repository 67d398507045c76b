"""The commands to the host of a NIC, beside those to the NIC itself (`nicd.core.commands`)."""

from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class RunProgram:
    """Take part in a program: make and connect its QPs now, begin at its instant. Result: `name`, `rank`, `qps`."""

    token: int
    program: dict[str, Any]
    """As `nicd.programs.program.Program.settings` gives it."""


@dataclass(slots=True)
class StopProgram:
    """End the rank of a program here and forget it, with its QPs and memory: name and number can be used again.

    Result: `name`.
    """

    token: int
    name: str
