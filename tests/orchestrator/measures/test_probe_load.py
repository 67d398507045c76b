"""What probes take of links."""

from fractions import Fraction

from mrcfabric.topology import Topology
from orchestrator.measures.probe_load import probe_rates

SHAPE = Topology(planes=2, t0_per_plane=2, t1_per_plane=4, nics_per_t0=4, rate_bps=50 * 10**9, mtu_bytes=4096)


def test_who_does_not_probe_takes_nothing() -> None:
    assert probe_rates(SHAPE, 0) == (0, 0)


def test_every_link_has_its_probes_of_a_round() -> None:
    of_nics, of_t1s = probe_rates(SHAPE, 100_000)
    # By hand: one to the T0 and 4 T1s times 2 testers over 4 NICs; 2 at each T0-T1 link.
    assert of_nics / of_t1s == Fraction(3, 2)
    assert 2 * 4096 * 8 * 10**4 < of_t1s < 2 * 4400 * 8 * 10**4


def test_alone_below_a_t0_a_nic_tests_all_itself() -> None:
    of_nics, of_t1s = probe_rates(Topology(planes=2, t0_per_plane=2, t1_per_plane=4, nics_per_t0=1), 100_000)
    assert of_nics == 5 * of_t1s
