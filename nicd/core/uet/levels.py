"""How things stand in a UET NIC, for metrics: contexts, credit, entropies.

Pure. `nicd.core.uet.uet_stats` counts what happens.
"""

from collections.abc import Collection, Iterable

from mrcfabric.glance import UetGlance
from nicd.core.uet.contexts import Contexts
from nicd.core.uet.credits import Grantor
from nicd.core.uet.entropy import Reps
from nicd.core.uet.peer import UetPeer
from nicd.core.uet.qp import UetLink


def levels(
    links: Collection[UetLink], peers: Iterable[UetPeer], contexts: Contexts, targets: int, grantor: Grantor | None
) -> dict[str, int]:
    """All levels of one NIC. `links`: its connected QPs; `targets`: contexts that peers have opened."""
    seen = glance_of(links, targets)
    sources = [peer.credit for peer in peers if peer.credit is not None]
    return {
        "initiators": seen.initiators,
        "targets": targets,
        "closing": len(contexts) - seen.initiators - targets,
        "responses_kept": sum(len(target.kept) for link in links for target in link.targets.values()),
        "credit_bytes": sum(max(0, source.left_bytes) for source in sources),
        "spare_bytes": sum(source.spare_bytes for source in sources),
        "senders_waiting": 0 if grantor is None else grantor.waiting,
        "senders_resting": 0 if grantor is None else grantor.resting,
        "entropies_drawn": seen.drawn,
        "entropies_resting": seen.resting,
        "entropies_kept": seen.kept,
        "frozen": seen.frozen,
        "planes_out": seen.planes_left,
    }


def glance_of(links: Collection[UetLink], targets: int) -> UetGlance:
    """What changes from look to look."""
    choices = [choice for link in links for choice in link.planes.choices]
    return UetGlance(
        sum(link.pdcid > 0 for link in links),
        targets,
        sum([choice.drawn for choice in choices]),
        sum([choice.resting for choice in choices]),
        sum([choice.kept for choice in choices]),
        sum(isinstance(choice, Reps) and choice.frozen_until_ns >= 0 for choice in choices),
        sum(link.planes.left.bit_count() for link in links),
    )
