"""By which port the packets of each plane leave a NIC, and by which port they arrive at another one.

Owns the difference between three numbers: the plane of an EV, a port of ours, and a port of the peer. A plane is a
class of EVs that share both ports, and with them a congestion window, a reserve and a state. Where every NIC has port p
in plane p, the three are equal, and nothing outside this module may rely on that.

MRC 1.0 6 (egress port of an EV), arXiv 2605.04333 section 2 (planes).
"""

from collections.abc import Sequence


class _Masks:
    """Mask -> mask, computed once for each mask that is asked for: the bits `target[i]` for all bits i."""

    __slots__ = ("_known", "_target")

    def __init__(self, target: Sequence[Sequence[int]]) -> None:
        self._target = target
        self._known: dict[int, int] = {}

    def __getitem__(self, mask: int) -> int:
        found = self._known.get(mask)
        if found is None:
            found = 0
            for bit, targets in enumerate(self._target):
                if mask >> bit & 1:
                    for target in targets:
                        found |= 1 << target
            self._known[mask] = found
        return found


class PlanePorts:
    """The ports of all planes between one NIC and another. Every mask has a bit per plane or per port."""

    __slots__ = ("_arriving", "in_port", "in_ports", "planes_of", "port", "ports_of")

    def __init__(self, port: Sequence[int], in_port: Sequence[int]) -> None:
        """`port`, `in_port`: by plane, our port and the peer's."""
        assert len(port) == len(in_port)
        self.port = tuple(port)
        """Plane -> the port of ours by which its packets leave."""
        self.in_port = tuple(in_port)
        """Plane -> the port of the peer by which they arrive."""
        self.in_ports = sum(1 << one for one in set(self.in_port))
        """Mask of the ports of the peer that any plane uses."""
        self.ports_of = _Masks([(one,) for one in self.port])
        """Mask of planes -> mask of the ports of ours by which they leave."""
        self.planes_of = _Masks(_by_port(self.port))
        """Mask of ports of ours -> mask of the planes that leave by them."""
        self._arriving = _Masks(_by_port(self.in_port))

    def alive(self, carrier: int, up: int) -> int:
        """The planes whose port of ours is in `carrier` and whose port of the peer is in `up`."""
        return self.planes_of[carrier] & self._arriving[up]

    def arriving(self, in_ports: int) -> int:
        """The planes that arrive at any of these ports of the peer."""
        return self._arriving[in_ports]


def _by_port(ports: tuple[int, ...]) -> list[list[int]]:
    """Port -> its planes."""
    return [[plane for plane, port in enumerate(ports) if port == one] for one in range(max(ports, default=-1) + 1)]
