"""Everything a switch core can be told, and nothing else.

Commands change the faults of the emulated links; the tables of a switch never change. Each carries the `token` under
which the driver waits for the answer (`events.CommandDone`).
"""

from dataclasses import dataclass
from typing import TypeAlias

from mrcfabric.impairment import Impairment


@dataclass(slots=True)
class SetImpairment:
    """From now on departures of `port` meet these faults; `Impairment()` heals."""

    token: int
    port: int
    impairment: Impairment


@dataclass(slots=True)
class ClearImpairments:
    """Every port is healthy from now on."""

    token: int


Command: TypeAlias = SetImpairment | ClearImpairments
