"""The metrics of a NIC's ports with traffic classes: how often and for how long PFC paused them.

Owns the definitions; `mrcfabric.class_egress` counts. A NIC whose switches do not pause has none of these series.
"""

from collections.abc import Iterator

from mrcfabric.metrics import NS, Counters, Definition, Reader, Sample


def _by_class(name: str, scale: float = 1) -> Reader:
    """A number of each class of each port; the port is the plane."""

    def read(counters: Counters) -> Iterator[Sample]:
        for plane, port in counters["core"]["ports"].items():
            for cls, told in port.get("classes", {}).items():
                yield str(plane), (str(cls),), told[name] * scale

    return read


CLASS_DEFINITIONS = (
    Definition("nic_port_pauses", "counter", "times", "Pauses of a traffic class that the switch asked for, by class.",
               "Is this NIC held back by its switch?", _by_class("pauses"), ("class",), per_plane=True),
    Definition("nic_port_paused_seconds", "counter", "seconds", "For how long the class was paused, in fabric time.",
               "How much of its time may it not send?", _by_class("pause_ns", NS), ("class",), per_plane=True),
)  # fmt: skip
