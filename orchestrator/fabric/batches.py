"""Asks many daemons the same, with one question for all that share a process (`mrcfabric.together`).

Owns which nodes are asked together, and what becomes of those that such an answer leaves out: each is asked on its own,
and says itself that it is down, cut off or silent. So whoever asks gets what as many single questions would have given.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias

from mrcfabric.control import NoAnswerError
from mrcfabric.errors import RefusedError
from mrcfabric.together import NODES_MAX, OP

LEFT_WALL_S_MIN: Final = 0.1
"""How long a node that an answer left out is asked at least."""


class Member(Protocol):
    """What this module needs of `orchestrator.fabric.daemons.Member`."""

    node: str
    incarnation: int
    process: Any
    child: Any

    @property
    def alive(self) -> bool: ...


Call: TypeAlias = Callable[[str, str, Mapping[str, Any] | None, float | None], Awaitable[Any]]
"""`Daemons.call`."""


class Batches:
    """The questions of one fabric to many daemons."""

    def __init__(self, members: Mapping[str, Member], call: Call) -> None:
        self._members = members
        self._call = call

    def groups(self, nodes: Iterable[str]) -> list[list[str]]:
        """These nodes by the process that carries them, in order; those that are down each for itself."""
        found: dict[Any, list[str]] = {}
        for node in nodes:
            member = self._members[node]
            alone = not member.alive or member.child.life is None
            found.setdefault(node if alone else (member.process.site, member.child.pid), []).append(node)
        return [
            group[first : first + NODES_MAX] for group in found.values() for first in range(0, len(group), NODES_MAX)
        ]

    async def ask(
        self, nodes: Sequence[str], op: str, args: Mapping[str, Any], timeout_s: float | None
    ) -> dict[str, Any]:
        """Ask each node; returns node -> its answer, or the exception that `Daemons.call` would have raised."""
        groups = self.groups(nodes)
        answers = await asyncio.gather(*(self._ask_group(group, op, args, timeout_s) for group in groups))
        found = {node: answer for group in answers for node, answer in group.items()}
        return {node: found[node] for node in nodes}

    async def ask_group(self, group: Sequence[str], op: str, args: Mapping[str, Any], timeout_s: float | None) -> Any:
        """Ask the nodes of one process at once; returns the answer of `together`. Raises as `Daemons.call`."""
        lives = {node: self._members[node].incarnation for node in group}
        asked = {"op": op, "args": dict(args), "nodes": lives}
        return await self._call(group[0], OP, asked, timeout_s)

    async def _ask_group(
        self, group: Sequence[str], op: str, args: Mapping[str, Any], timeout_s: float | None
    ) -> dict[str, Any]:
        began_s = time.monotonic()
        found: dict[str, Any] = {}
        if len(group) > 1:
            try:
                found = await self.ask_group(group, op, args, timeout_s)
            except NoAnswerError as error:
                return dict.fromkeys(group, error)  # the process is silent, and so is each of them
            except RefusedError:
                pass  # the one that was asked has died meanwhile
        rest = [node for node in group if node not in found]
        if rest:
            if timeout_s is not None:
                timeout_s = max(LEFT_WALL_S_MIN, timeout_s - (time.monotonic() - began_s))
            calls = (self._call(node, op, args, timeout_s) for node in rest)
            found.update(zip(rest, await asyncio.gather(*calls, return_exceptions=True), strict=True))
        return found
