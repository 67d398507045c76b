"""The life of EV profiles."""

import pytest

from mrcfabric.errors import RefusedError
from nicd.compose import nic_config
from nicd.core.mrc.ev_profiles import NEXT, ProfileState, ProfileTable
from tests.nicd.core.bench import topology

INIT, OFFLINE, ONLINE = ProfileState


def table(**nic: int) -> ProfileTable:
    return ProfileTable(nic_config(topology(**nic), "h000"))


@pytest.mark.spec("MRC 1.0", "6")
@pytest.mark.parametrize("target", list(ProfileState))
@pytest.mark.parametrize("source", list(ProfileState))
def test_the_full_table_of_states(source: ProfileState, target: ProfileState) -> None:
    allowed = {(INIT, OFFLINE), (OFFLINE, ONLINE), (ONLINE, OFFLINE), (OFFLINE, INIT)}
    assert (target in NEXT[source]) == ((source, target) in allowed)
    profile = table().create(None)
    profile.state = source
    if (source, target) in allowed:
        profile.move(target)
        assert profile.state == target
    else:
        with pytest.raises(RefusedError, match="cannot go from"):
            profile.move(target)


@pytest.mark.spec("MRC 1.0", "6")
def test_only_an_online_profile_is_used_and_a_used_one_stays() -> None:
    profiles = table()
    profile = profiles.create(7)
    for state in (OFFLINE, ONLINE):
        with pytest.raises(RefusedError, match=r"EV profile 7 is (init|offline), not online"):
            profiles.tie(7)
        profile.move(state)
    assert profiles.tie(7) is profile
    with pytest.raises(RefusedError, match="cannot go offline: 1 QPs are tied to it"):
        profile.move(OFFLINE)
    with pytest.raises(RefusedError, match="cannot go away: 1 QPs"):
        profiles.destroy(7)
    profile.users -= 1
    with pytest.raises(RefusedError, match="take it offline first"):
        profiles.destroy(7)
    profile.move(OFFLINE)
    profiles.destroy(7)
    with pytest.raises(RefusedError, match="no EV profile 7"):
        profiles.tie(7)


def test_the_built_in_profile_is_there_and_stays() -> None:
    profiles = table()
    assert profiles.tie(None).state == ONLINE
    with pytest.raises(RefusedError, match="built in"):
        profiles.destroy(0)


def test_numbers_are_bounded() -> None:
    profiles = table(ev_profiles_max=3)
    assert profiles.create(2).number == 2
    with pytest.raises(RefusedError, match="exists already"):
        profiles.create(2)
    with pytest.raises(RefusedError, match="possible are 1 to 65535"):
        profiles.create(65_536)
    assert profiles.create(None).number == 1
    with pytest.raises(RefusedError, match="all 3 EV profiles are in use"):
        profiles.create(None)


def test_back_in_init_the_configuration_is_forgotten() -> None:
    profile = table().create(None)
    profile.universe.configure(mode="explicit", evs=["0x1"])
    profile.denied[1] = None
    profile.move(OFFLINE)
    profile.move(INIT)
    assert (profile.universe.mode, profile.universe.items, profile.denied) == ("auto", [], {})
