"""What a port says at a glance."""

from mrcfabric.egress import Egress
from mrcfabric.egress_config import EgressConfig
from mrcfabric.glance import Head, PortGlance, head_of, port_glance, ports_of
from mrcfabric.impairment import Impairment
from mrcfabric.node import Transmit
from mrcfabric.rng import Rng

PACKET = bytes(962)
"""With 38 bytes of framing a thousand."""


def port(**settings: int) -> Egress:
    return Egress(EgressConfig(rate_bps=8_000_000_000, delay_ns=100, **settings), 0, Rng("glance"))


def glance(egress: Egress) -> PortGlance:
    return PortGlance(*port_glance(egress))


def test_a_port_tells_of_departures_with_their_framing_and_of_what_waits() -> None:
    egress, out = port(), list[Transmit]()
    for control in (0, 0, 1):
        egress.offer(1000, PACKET, control, out)
    assert glance(egress) == PortGlance(0, 3 * 962, 0, 0, 0)
    egress.run(2000, out)
    assert len(out) == 2
    assert glance(egress) == PortGlance(2000, 962, 0, 0, 0)


def test_drops_are_what_was_refused_and_what_a_fault_lost() -> None:
    egress, out = port(data_bytes_max=1000), list[Transmit]()
    egress.offer(1000, PACKET, 0, out)
    egress.offer(1000, PACKET, 0, out)
    assert glance(egress).drops == 1
    egress.set_impairment(1000, Impairment(up=False), out)
    egress.run(5000, out)
    assert glance(egress) == PortGlance(1000, 0, 0, 0, 2)


def test_a_glance_that_has_travelled_is_read_by_names() -> None:
    head, ports = Head(5, 0, 7, 10, 1, 2), [PortGlance(1, 2, 3, 4, 5)]
    travelled = [list(head), [list(port) for port in ports], [1, 0]]
    assert head_of(travelled) == head
    assert ports_of(travelled) == ports
