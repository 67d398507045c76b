"""Planes, ports of ours and ports of the peer are three things."""

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.plane_ports import PlanePorts


def test_where_ports_are_numbered_as_planes_are_the_masks_are_equal() -> None:
    ports = PlanePorts(range(3), range(3))
    for mask in range(8):
        assert ports.ports_of[mask] == ports.planes_of[mask] == ports.arriving(mask) == mask
    assert ports.alive(0b011, 0b110) == 0b010
    assert ports.in_ports == 0b111


def test_a_plane_lives_when_its_own_port_and_the_peers_do() -> None:
    for port in permutations(range(3)):
        for in_port in permutations(range(3)):
            ports = PlanePorts(port, in_port)
            for dead in range(3):
                assert ports.alive(0b111 & ~(1 << port[dead]), 0b111) == 0b111 & ~(1 << dead)
                assert ports.alive(0b111, 0b111 & ~(1 << in_port[dead])) == 0b111 & ~(1 << dead)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=6), st.integers(0, 15))
def test_planes_may_share_ports(pairs: list[tuple[int, int]], mask: int) -> None:
    ports = PlanePorts([port for port, _ in pairs], [in_port for _, in_port in pairs])
    planes = range(len(pairs))
    leaving = {plane for plane in planes if mask >> pairs[plane][0] & 1}
    arriving = {plane for plane in planes if mask >> pairs[plane][1] & 1}
    assert ports.planes_of[mask] == sum(1 << plane for plane in leaving)
    assert ports.arriving(mask) == sum(1 << plane for plane in arriving)
    assert ports.alive(mask, mask) == sum(1 << plane for plane in leaving & arriving)
    assert ports.ports_of[ports.planes_of[mask]] == sum(1 << port for port in {pairs[plane][0] for plane in leaving})
    assert ports.in_ports == sum(1 << port for port in {in_port for _, in_port in pairs})
