"""Running one case to its end, and what came out of it."""

import hashlib
from dataclasses import dataclass, field
from typing import Final

from mrcfabric.units import Instant
from swarm.case import SYSTEMS, Case
from swarm.invariant import InvariantError
from swarm.systems import verdict as of_systems
from swarm.systems.world import SystemWorld
from swarm.verdict import at_rest, balanced, deadline_ns, ends, healed, healthy, judge, rest_ns
from swarm.watched import CutShortError
from swarm.world import Depth, World

AFTERLIFE_RTTS: Final = 100
"""How long flows are watched whose end was destroyed, in base RTTs."""


TOLD: Final = ("data_packets", "retransmits", "packets_lost", "taken_back", "duplicates", "trims", "qp_errors")
"""Counters of the NICs that are summed up for a reader."""


@dataclass(slots=True)
class Outcome:
    """What a run showed."""

    case: Case
    violation: InvariantError | None = None
    crash: BaseException | None = None
    """An error of a core that is no violation of ours: an assertion, a KeyError."""
    cut: bool = False
    """It took more steps than a case is given; nothing was wrong until then."""
    digest: str = ""
    """Of the traces of all nodes in all incarnations; empty when the run broke off."""
    ended_ns: int = 0
    data_packets: int = 0
    totals: dict[str, int] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        return self.violation is not None or self.crash is not None

    @property
    def reason(self) -> str:
        """One line."""
        if self.violation is not None:
            return str(self.violation)
        return f"{type(self.crash).__name__}: {self.crash}" if self.crash is not None else ""


def run(case: Case, depth: Depth | None = None) -> Outcome:
    """Run a case, watched to the given depth. Never raises for what a core does."""
    outcome = Outcome(case)
    world: World | None = None
    try:
        if case.series == SYSTEMS:
            world = systems = SystemWorld(case, depth)
            play_system(systems)
        else:
            world = World(case, depth)
            play(world)
        outcome.digest = digest_of(world)
    except InvariantError as violation:
        outcome.violation = violation
    except CutShortError:
        outcome.cut = True
    except Exception as error:  # a core that raises is a finding, whatever it raises
        outcome.crash = error
    if world is not None:
        outcome.ended_ns = world.now_ns
        outcome.totals = {name: world.total(name) for name in TOLD}
        outcome.data_packets = outcome.totals.get("data_packets", 0)
    return outcome


def play(world: World) -> None:
    """The whole case, and the verdict. Raises InvariantError."""
    case = world.case
    _work(world, deadline_ns(case))
    judge(world)
    if healed(world):
        world.pass_until(lambda: world.simulator.next_due() is None, world.now_ns + rest_ns(case))
        at_rest(world)
    balanced(world)
    healthy(world)
    world.measure()


def play_system(world: SystemWorld) -> None:
    """The same for a case of any system. Raises InvariantError."""
    case = world.case
    _work(world, of_systems.deadline_ns(case))
    of_systems.judge(world)
    if of_systems.healed(world):
        world.pass_until(world.drained, world.now_ns + of_systems.rest_ns(case))
        of_systems.at_rest(world)
    of_systems.healthy(world)
    of_systems.overfull(world)
    world.measure()


def _work(world: World, deadline_ns: Instant) -> None:
    """Let the fabric do what it is told, until all is done or the deadline has come."""
    case = world.case
    last_ns = max(write.at_ns for flow in case.flows for write in (*flow.forth, *flow.back))
    due_ns = max([last_ns, *(max(fault.at_ns, fault.until_ns) for fault in case.faults)])
    lasting = [number for number in range(len(case.flows)) if not ends(case, number)]

    def done() -> bool:
        return world.now_ns > due_ns and not any(world.messages.open[number] for number in lasting)

    world.pass_until(done, deadline_ns)
    # Flows that a mishap has ended: what they do without their peer is watched for a while.
    afterlife_ns = AFTERLIFE_RTTS * case.topology.base_rtt_ns()
    world.pass_until(lambda: not any(world.messages.open.values()), world.now_ns + afterlife_ns)


def digest_of(world: World) -> str:
    """One digest of everything that every node did."""
    whole = hashlib.blake2b(digest_size=16)
    for name in world.topology.node_names():
        for trace in world.traces(name):
            whole.update(f"{name} {trace.digest()}\n".encode())
    return whole.hexdigest()
