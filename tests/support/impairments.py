"""Any faults of one link direction, for properties."""

from hypothesis import strategies as st

from mrcfabric.impairment import Impairment
from mrcfabric.rng import PPM


def faults() -> st.SearchStrategy[Impairment]:
    """Mixtures of all kinds, often certain or none."""
    share = st.sampled_from([0, 0, 1, 300_000, PPM])
    time = st.sampled_from([0, 0, 1, 700])
    return st.builds(
        Impairment,
        up=st.sampled_from([True, True, True, False]),
        loss_ppm=share,
        loss_burst_packets=st.sampled_from([1, 1, 5]),
        gray_ppm=share,
        black_hole_usids=st.lists(st.integers(1, 9), max_size=3).map(lambda found: tuple(sorted(set(found)))),
        black_hole_evs=st.lists(st.integers(0, 9), max_size=3).map(lambda found: tuple(sorted(set(found)))),
        corruption_ppm=share,
        duplication_ppm=share,
        reordering_ppm=share,
        reordering_ns=st.sampled_from([1, 900]),
        delay_ppm=share,
        delay_ns=time,
        jitter_ns=time,
        rate_bps=st.sampled_from([0, 0, 5, 7]),
    )
