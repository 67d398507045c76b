"""Deny lists of a scenario that leave a NIC without a path, and EV profiles that a NIC has twice or not."""

import pytest

from mrcfabric.errors import ConfigError
from tests.support.scenarios import plan_of, small_plan

PLANES = "[{nics: h000, plane: 0}, {nics: h000, plane: 1%s}]"


@pytest.mark.parametrize(
    ("entries", "where", "peers"),
    [
        (PLANES % "", "some.yaml:7: deny[1]", "h000 would have no path left to h001, h002, h003,"),
        ("[{plane: 0}, {plane: 1, nics: h00*}]", "deny[1]", "h000 would have no path left to h001, h002, h003,"),
        ("[{nics: h000, plane: 0, to: h002}, {nics: h000, plane: 1, to: h002}]", "deny[1]", "left to h002,"),
    ],
)
def test_the_entry_that_takes_the_last_path_is_named(entries: str, where: str, peers: str) -> None:
    with pytest.raises(ConfigError) as caught:
        small_plan(f"deny: {entries}")
    assert where in str(caught.value)
    assert peers in str(caught.value)
    assert str(caught.value).endswith("(cut_off: true in this entry denies it all the same)")


@pytest.mark.parametrize(
    "entries",
    [
        PLANES % ", cut_off: true",
        PLANES % ", path: 1",
        "[{nics: h000, plane: 0, to: h003}, {nics: h000, plane: 1, to: h003}]",  # they exchange nothing
        "[{nics: h000, plane: 1, cut_off: true}, {nics: h000, plane: 0, cut_off: true}, {nics: h000, plane: 1}]",
    ],
)
def test_what_cuts_nobody_off_or_says_that_it_does_is_accepted(entries: str) -> None:
    text = (
        "name: small\nfabric: {planes: 2, t0_per_plane: 2, t1_per_plane: 2, nics_per_t0: 2}\n"
        "workload:\n  - {name: pair, kind: p2p, ranks: [h000, h001], message_bytes: 64KiB, messages: 2}\n"
    )
    assert plan_of(text + f"deny: {entries}\n").orders


def test_the_peer_that_only_receives_needs_paths_for_its_acknowledgements() -> None:
    text = (
        "name: small\nfabric: {planes: 1, t0_per_plane: 2, t1_per_plane: 2, nics_per_t0: 2}\n"
        "workload:\n  - {name: pair, kind: p2p, ranks: [h000, h001], message_bytes: 64KiB, messages: 2}\n"
    )
    with pytest.raises(ConfigError, match="h001 would have no path left to h000, and"):
        plan_of(text + "deny: [{nics: h001, plane: 0, to: h000}]\n")


@pytest.mark.parametrize(
    ("workload", "profiles", "said"),
    [
        ("0", "{number: 3}, {number: 3, nics: h001}", "ev_profiles[1].number: h001 has an EV profile 3 already"),
        ("3", "{number: 3, nics: h000}", "workload[0].profile: h001 has no EV profile 3"),
        ("3", "{number: 4}", "workload[0].profile: there is no EV profile 3"),
        ("3", "{number: 3, nics: h000}, {number: 3, nics: h001, count: 8, reserve: 0}", ""),
    ],
)
def test_every_nic_has_an_ev_profile_once_and_those_of_its_work(workload: str, profiles: str, said: str) -> None:
    text = (
        "name: small\nfabric: {planes: 2, t0_per_plane: 2, t1_per_plane: 2, nics_per_t0: 2}\nworkload:\n"
        f"  - {{name: pair, kind: p2p, ranks: [h000, h001], message_bytes: 64KiB, messages: 2, profile: {workload}}}\n"
        f"ev_profiles: [{profiles}]\n"
    )
    if not said:
        assert plan_of(text).orders
        return
    with pytest.raises(ConfigError) as caught:
        plan_of(text)
    assert said in str(caught.value)


OWN_EVS = (
    "name: small\nfabric: {planes: 2, t0_per_plane: 2, t1_per_plane: 2, nics_per_t0: 1}\nworkload:\n"
    "  - {name: pair, kind: p2p, ranks: [h000, h001], message_bytes: 64KiB, messages: 2, profile: 3}\n"
    'ev_profiles: [{number: 3, mode: explicit, evs: ["0x0", "0x8"]}]\n'  # T1 0 and T1 1 of plane 0
)


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ("[{plane: 0}]", "some.yaml:6: deny[0]: h000 would have no EV of profile 3 left to h001,"),
        ("[{plane: 0, path: 0}, {plane: 0, path: 1, nics: h001}]", "deny[1]: h001 would have no EV of profile 3 left"),
        ("[{plane: 0, to: h000, nics: h001}]", "deny[0]: h001 would have no EV of profile 3 left to h000,"),
        ("[{plane: 0, cut_off: true}]", ""),
        ("[{plane: 0, path: 0}, {plane: 1}]", ""),
    ],
)
def test_the_entry_that_covers_the_last_ev_of_a_profile_is_named(entries: str, said: str) -> None:
    text = f"{OWN_EVS}deny: {entries}\n"
    if not said:
        assert plan_of(text).orders
        return
    with pytest.raises(ConfigError) as caught:
        plan_of(text)
    assert said in str(caught.value)
