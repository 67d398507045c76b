"""What a look shows of a UET NIC, and the sums of all of them.

Pure. `mrcfabric.glance.UetGlance` has what a NIC tells.
"""

from collections.abc import Iterable

from mrcfabric.glance import NicRest, UetGlance
from orchestrator.live.snapshot import NicView, UetView


def uet_view(rest: NicRest) -> UetView:
    """Make the view of one NIC; `rest`: its present state, which of a dead one is empty."""
    return UetView(**(UetGlance(*rest.uet) if rest.uet else _NONE)._asdict())


def uet_sums(nics: Iterable[NicView]) -> UetView | None:
    """All UET NICs together; None without any."""
    views = [nic.uet for nic in nics if nic.uet is not None]
    if not views:
        return None
    return UetView(**{name: sum(getattr(view, name) for view in views) for name in UetGlance._fields})


_NONE = UetGlance(0, 0, 0, 0, 0, 0, 0)
