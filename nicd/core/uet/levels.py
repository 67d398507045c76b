"""How things stand in a UET NIC, for metrics: contexts, credit, entropies.

Pure. `nicd.core.uet.uet_stats` counts what happens.
"""

from collections.abc import Collection, Iterable

from nicd.core.uet.contexts import Contexts
from nicd.core.uet.credits import Grantor
from nicd.core.uet.entropy import Reps
from nicd.core.uet.peer import UetPeer
from nicd.core.uet.qp import UetLink


def levels(
    links: Collection[UetLink], peers: Iterable[UetPeer], contexts: Contexts, targets: int, grantor: Grantor | None
) -> dict[str, int]:
    """All levels of one NIC. `links`: its connected QPs; `targets`: contexts that peers have opened."""
    initiators = sum(link.pdcid > 0 for link in links)
    sources = [peer.credit for peer in peers if peer.credit is not None]
    choices = [choice for link in links for choice in link.planes.choices]
    return {
        "initiators": initiators,
        "targets": targets,
        "closing": len(contexts) - initiators - targets,
        "responses_kept": sum(len(target.kept) for link in links for target in link.targets.values()),
        "credit_bytes": sum(max(0, source.left_bytes) for source in sources),
        "spare_bytes": sum(source.spare_bytes for source in sources),
        "senders_waiting": 0 if grantor is None else grantor.waiting,
        "senders_resting": 0 if grantor is None else grantor.resting,
        "entropies_drawn": sum(len(choice.entropies) for choice in choices),
        "entropies_resting": sum(choice.resting for choice in choices),
        "entropies_kept": sum(choice.kept for choice in choices),
        "frozen": sum(isinstance(choice, Reps) and choice.frozen_until_ns >= 0 for choice in choices),
        "planes_out": sum(link.planes.left.bit_count() for link in links),
    }
