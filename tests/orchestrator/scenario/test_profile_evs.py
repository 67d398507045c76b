"""What the EV profiles of a scenario hold, checked before a NIC is asked."""

import pytest

from mrcfabric.errors import ConfigError
from tests.support.scenarios import plan_of, small_plan


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ("mode: explicit, evs: [zzz]", "h000: 'zzz' is no EV of format stev"),
        ('mode: explicit, evs: ["0x0", "0x0"]', "h000: EV 0x00000000@1 is in the profile already"),
        ("mode: explicit", "h000: EV profile 3 has no EVs"),
        ("mode: generated", "h000: EV profile 3 is to be generated and has no rules"),
        ("format: none, nics: h002", "h002: 'none' is no format of an EV profile"),
        ("count: 3", "h000: 3 EVs, "),
        ("count: 8, reserve: 8", "h000: 8 of 8 EVs in reserve leave none active"),
    ],
)
def test_a_profile_that_no_nic_would_take_is_refused_with_its_line(attributes: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        small_plan(f"ev_profiles: [{{number: 3, {attributes}}}]")
    assert f"some.yaml:7: ev_profiles[0]: {said}" in str(caught.value)


def test_a_nic_has_room_for_so_many_profiles() -> None:
    text = (
        "name: small\nfabric: {planes: 2, t0_per_plane: 2, t1_per_plane: 2, nic: {ev_profiles_max: 2}}\n"
        "workload:\n  - {name: pair, kind: p2p, ranks: [h000, h001], message_bytes: 64KiB, messages: 2}\n"
    )
    assert plan_of(f"{text}ev_profiles: [{{number: 3}}]\n").orders
    with pytest.raises(ConfigError, match=r"ev_profiles\[1\]: h000: all 2 EV profiles are in use"):
        plan_of(f"{text}ev_profiles: [{{number: 3}}, {{number: 4}}]\n")


def test_evs_that_are_drawn_for_each_qp_and_those_of_other_profiles_are_left_alone() -> None:
    assert small_plan("ev_profiles: [{number: 3, count: 8}]\ndeny: [{plane: 0}]").orders
