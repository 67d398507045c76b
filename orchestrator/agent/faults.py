"""The agent's requests about faults: inject, heal, list, and leases, so that no fault of a run outlives the run.

Owns ids, times to live and owners. A fault without an owner is healed when its time to live is over. A fault with an
owner is healed when the owner's lease ends (`orchestrator.agent.leases`): when the owner ends in any way, or when the
agent hears nothing from it. The fabric carries faults out; `orchestrator.agent.agent` serves the requests.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from mrcfabric.control import NoAnswerError
from mrcfabric.errors import ConfigError, RefusedError
from mrcfabric.naming import shown
from mrcfabric.rng import Rng
from mrcfabric.units import NEVER, Instant
from orchestrator.agent.leases import Held, Leases
from orchestrator.client import bodies
from orchestrator.fabric.launched import LaunchedFabric
from orchestrator.faults.checks import WINDOWS_MAX, figures_of
from orchestrator.faults.fault import Fault, Window
from orchestrator.faults.kinds import KINDS, nearest_kind
from orchestrator.faults.selectors import Selector, select
from orchestrator.process.launcher import ProcessFailedError

TTL_WALL_S = 600.0
"""After how much wall time a fault without an owner is healed, unless its request gives another time to live."""
TTL_WALL_S_MAX = 24 * 3600.0
STANDING_WALL_S = 1.0
"""How long time may still stand still after its owner has gone, while the owner's faults are healed."""

_TROUBLES = (ConfigError, RefusedError, NoAnswerError, ProcessFailedError)


class FaultRequests:
    """Requests about the faults of one fabric. Each raises ConfigError and RefusedError."""

    def __init__(self, fabric: LaunchedFabric) -> None:
        self._fabric = fabric
        self._numbers = itertools.count(1)
        self._expiries: dict[str, asyncio.TimerHandle] = {}
        self.leases = Leases(lambda owner: self._background(self._release(owner)), self._lost)
        """The leases of those who own faults, programs or fabric time."""
        self._healing: set[asyncio.Task[None]] = set()
        self.on_release: Callable[[str], Awaitable[None]] | None = None
        """Called with an owner whose lease has ended, after its faults are healed and its limit is lifted."""

    # Requests.

    async def add(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Inject a fault described by `kind`, `selector` and `figures`; returns its record.

        Optional: `at_ns` (default: soon), `for_ns` (default: until healed), `every_ns` and `times` (again so often),
        `id`, `owner`, `ttl_s`, and `seed` for what the selector leaves to chance.
        """
        fabric, kind = self._fabric, body.get("kind")
        if not isinstance(kind, str) or kind not in KINDS:
            raise ConfigError("kind", f"{kind!r} is no kind of fault", nearest_kind(str(kind)))
        fault_id = bodies.text(body, "id", "") or self._next_id()
        seed, owner = bodies.text(body, "seed", ""), bodies.text(body, "owner", "")
        selector = Selector.of_table(bodies.table(body, "selector", {}))
        rng = Rng(fabric.topology.seed, "fault", seed or fault_id)
        targets = select(fabric.topology, kind, selector, rng, fabric.host_map)
        figures = figures_of(fabric.topology, kind, bodies.table(body, "figures", {}))
        at_ns, for_ns = bodies.whole(body, "at_ns", 1), bodies.whole(body, "for_ns", 1)
        every_ns, times = _repeated(body, for_ns)

        def beginning(start_ns: Instant) -> Fault:
            starts = [start_ns + turn * every_ns for turn in range(times)]
            windows = tuple(Window(at, NEVER if for_ns is None else at + for_ns, figures) for at in starts)
            return Fault(fault_id, kind, targets, windows, owner)

        async def inject() -> Fault:
            return await (fabric.inject_soon(beginning) if at_ns is None else fabric.inject(beginning(at_ns)))

        return await self._inject(fault_id, owner, inject, body)

    async def inject(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Inject `fault`, a whole record (`Fault.record`), with `ttl_s`; returns the record as resolved."""
        fault = Fault.of(bodies.table(body, "fault"))
        return await self._inject(fault.id, fault.owner, lambda: self._fabric.inject(fault), body)

    async def heal(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Heal the faults in `ids`, or all with `all`: true, at `at_ns` (default: soon).

        Returns what is left of each: a record or None. When one of `ids` is no fault, none is healed. With `all`, one
        that ends meanwhile is no mistake. When a daemon does not answer, the other faults are healed all the same; then
        NoAnswerError is raised.
        """
        fabric, everything = self._fabric, body.get("all") is True
        ids = [fault.id for fault in fabric.faults()] if everything else bodies.texts(body, "ids")
        if ids is None:
            raise ConfigError("ids", "is missing", "mrcfabric fault list shows them")
        if not everything:
            self._require(ids)
        at_ns = bodies.whole(body, "at_ns", 1)
        left: dict[str, Any] = {}
        silent: NoAnswerError | None = None
        for one in ids:
            expiry = self._expiries.get(one)
            try:
                rest = await fabric.heal(one, at_ns)
                left[one] = None if rest is None else rest.record()
            except RefusedError:
                if not everything:
                    raise
                continue
            except NoAnswerError as error:
                silent = error  # the fault has ended, and the silent daemon is still being told: heal the others, too
            # One that is to end at an instant keeps its time to live: fabric time may take days to get there.
            if at_ns is None and self._expiries.get(one) is expiry:  # otherwise another fault has got this id meanwhile
                self._forget(one)
        if silent is not None:
            raise silent
        return left

    def _require(self, ids: Sequence[str]) -> None:
        """Raises RefusedError unless each is a fault that has not ended: else some would be healed, and some not."""
        live = self._live()
        for one in ids:
            if one not in live:
                rest = "; none is healed" if len(ids) > 1 else ""
                raise RefusedError(f"there is no fault {shown(one)}, or it is over{rest}")

    async def every(self, _body: Mapping[str, Any]) -> list[dict[str, Any]]:
        """List every fault that has not ended: its record, `active`, and `ttl_s`, its wall time left (None: owned)."""
        return self.records()

    def records(self) -> list[dict[str, Any]]:
        """The same list, without waiting."""
        now_s = asyncio.get_running_loop().time()
        biting = {fault.id for fault in self._fabric.active_faults()}
        found = []
        for fault in self._fabric.faults():
            expiry = self._expiries.get(fault.id)
            ttl_s = None if expiry is None else round(max(0.0, expiry.when() - now_s), 1)
            found.append({**fault.record(), "active": fault.id in biting, "ttl_s": ttl_s})
        return found

    def close(self) -> None:
        """Cancel all times to live."""
        for one in list(self._expiries):
            self._forget(one)

    # Leases and times to live.

    async def _inject(
        self, fault_id: str, owner: str, inject: Callable[[], Awaitable[Fault]], body: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Inject a fault, and start its time to live if it has no owner; returns its record as resolved."""
        ttl_s = bodies.seconds(body, "ttl_s", TTL_WALL_S, TTL_WALL_S_MAX)
        if owner:
            self.leases.require(owner, "what it breaks would stay broken")
        # A timer of a fault that has ended must not end a later fault of the same name.
        live = self._live()
        for one in self._expiries.keys() - live.keys():
            self._forget(one)
        try:
            taken = await inject()
        finally:
            # Also when a daemon or its host has not answered: the fault is in the table, and they are still being told.
            # Not when the fault was refused because another one has its name.
            taken_in = self._live().get(fault_id)
            new = taken_in is not None and taken_in is not live.get(fault_id)
            if not owner and new:
                self._forget(fault_id)
                self._expiries[fault_id] = asyncio.get_running_loop().call_later(ttl_s, self._expire, fault_id)
        return taken.record()

    def _live(self) -> dict[str, Fault]:
        return {fault.id: fault for fault in self._fabric.faults()}

    def _expire(self, fault_id: str) -> None:
        self._forget(fault_id)
        self._background(self._heal_all([fault_id], "its time to live was over"))

    def _forget(self, fault_id: str) -> None:
        expiry = self._expiries.pop(fault_id, None)
        if expiry is not None:
            expiry.cancel()

    def _lost(self, held: Held) -> None:
        self._fabric.journal.note(
            "lease_lost", self._fabric.now_ns(), owner=held.owner, pid=held.pid, command=held.command
        )

    async def _release(self, owner: str) -> None:
        fabric = self._fabric
        owned = [fault.id for fault in fabric.faults() if fault.owner == owner]
        healing = self._background(self._heal_all(owned, f"the lease of {owner} ended"))
        if fabric.limit_owner == owner:
            # Commands sent while time stands still are in time. But a daemon that hears nothing must not hold it long.
            await asyncio.wait([healing], timeout=STANDING_WALL_S)
            await fabric.limit(None, owner)
        await healing
        if self.on_release is not None:
            await self.on_release(owner)

    async def _heal_all(self, ids: list[str], why: str) -> None:
        """Heal faults; the journal notes those that cannot be healed."""
        for one in ids:
            try:
                await self._fabric.heal(one, why=why)
            except _TROUBLES as error:
                if any(fault.id == one for fault in self._fabric.faults()):
                    self._fabric.journal.note("unhealed", self._fabric.now_ns(), id=one, why=str(error))

    def _background(self, work: Any) -> "asyncio.Task[None]":
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        self._healing.add(task)
        task.add_done_callback(self._healing.discard)
        return task

    def _next_id(self) -> str:
        taken = self._live()
        return next(name for number in self._numbers if (name := f"f{number}") not in taken)


def _repeated(body: Mapping[str, Any], for_ns: int | None) -> tuple[int, int]:
    """From one window to the next, and how many there are. Raises ConfigError."""
    every_ns, times = bodies.whole(body, "every_ns", 1), bodies.whole(body, "times", 1)
    if every_ns is None and times is None:
        return 0, 1
    if every_ns is None or times is None or for_ns is None:
        raise ConfigError("every", "what comes again needs for, every and times", "--for 1s --every 2s --times 5")
    if for_ns > every_ns:
        raise ConfigError("every", f"comes after {every_ns} ns, before the {for_ns} ns that it lasts are over")
    if times > WINDOWS_MAX:
        raise ConfigError("times", f"{times} is too often", f"1..{WINDOWS_MAX}")
    return every_ns, times
