"""Every target over its own seeds and over what hypothesis makes of them, without a fuzzer."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.targets import TARGETS
from tests.support.corners import corners

NICS = ("nic", "nic-spilling", "rc", "rc-selective", "uet-core", "uet-credits")
SWITCHES = ("switch", "routed", "lossless", "lossless-usid", "credited", "router")
OPERATORS = ("nic-commands", "switch-commands")
DECODERS = [name for name in TARGETS if name not in (*NICS, *OPERATORS, *SWITCHES)]
SLOW_STEP = 8
"""Of the runs of a NIC, which take tens of milliseconds each, one in so many."""


@pytest.mark.parametrize("name", TARGETS)
def test_the_seeds_of_a_target_break_nothing(name: str) -> None:
    seeds = TARGETS[name].seeds()
    assert len(seeds) > 3
    assert max(map(len, seeds)) <= TARGETS[name].size_max or name == "pcapng"
    for seed in seeds[:: SLOW_STEP if name in NICS else 1]:
        TARGETS[name].run(seed)


@st.composite
def spoilt(draw: st.DrawFn, name: str) -> bytes:
    """A seed with a few bytes overwritten, cut out or put in."""
    data = bytearray(draw(st.sampled_from(TARGETS[name].seeds())))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(data)))
        stop = start + draw(st.integers(0, 8))
        data[start:stop] = draw(st.binary(max_size=8))
    return bytes(data)


@pytest.mark.parametrize("name", DECODERS)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_spoilt_seeds_break_no_decoder(name: str, data: st.DataObject) -> None:
    TARGETS[name].run(data.draw(spoilt(name)))


@pytest.mark.long
@pytest.mark.parametrize("name", DECODERS)
@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_many_spoilt_seeds_break_no_decoder(name: str, data: st.DataObject) -> None:
    TARGETS[name].run(data.draw(spoilt(name)))


@pytest.mark.parametrize("name", DECODERS)
@settings(max_examples=30, deadline=None)
@given(data=st.binary(max_size=200))
def test_random_bytes_break_no_decoder(name: str, data: bytes) -> None:
    TARGETS[name].run(data)


@pytest.mark.parametrize("name", NICS)
@settings(max_examples=10, deadline=None)
@given(script=st.binary(min_size=4, max_size=200))
def test_a_hostile_peer_harms_nobody_but_its_own_qp(name: str, script: bytes) -> None:
    TARGETS[name].run(script)


@pytest.mark.parametrize("name", OPERATORS)
@settings(max_examples=15, deadline=None)
@given(script=st.binary(min_size=4, max_size=300))
def test_an_operator_gets_one_answer_to_anything(name: str, script: bytes) -> None:
    TARGETS[name].run(script)


@pytest.mark.parametrize("name", SWITCHES)
@settings(max_examples=40, deadline=None)
@given(script=st.binary(min_size=4, max_size=400))
def test_a_switch_conserves_whatever_it_is_sent(name: str, script: bytes) -> None:
    TARGETS[name].run(script)


@pytest.mark.slow
@pytest.mark.parametrize("name", corners(NICS, "nic", "uet-core"))
def test_a_hostile_peer_in_every_way_the_seeds_know(name: str) -> None:
    for seed in TARGETS[name].seeds():
        TARGETS[name].run(seed)
