"""Many to one at any fan-in: nobody's QP ends, nothing much is sent again, and shares are alike."""

import pytest

from studies import incasts
from studies.fan_in import FanIn, Found, main, row, watch
from studies.incasts import incumbent, long_one

_DROPS = {"trim": False, "trim_last_hop": False}


def healthy(found: Found) -> None:
    assert (found.errors, found.retired) == (0, 0)


@pytest.mark.spec("MRC 1.0", "4")
@pytest.mark.parametrize(("degree", "goodput", "alike"), [(4, 0.98, 0.98), (7, 0.97, 0.95), (15, 0.95, 0.93)])
def test_a_long_incast_sends_next_to_nothing_again(degree: int, goodput: float, alike: float) -> None:
    found = watch(FanIn(degree, warm_rtts=60, rtts=120, bin_rtts=40))
    healthy(found)
    assert found.goodput > goodput
    assert found.resent < 0.02
    assert found.jain_all > alike


@pytest.mark.spec("MRC 1.0", "4")
@pytest.mark.parametrize(
    ("rate", "degree", "alike"), [(25, 4, 0.95), (25, 15, 0.9), (100, 4, 0.985), (400, 15, 0.97), (400, 31, 0.97)]
)
def test_every_bin_of_a_long_incast_is_fair(rate: int, degree: int, alike: float) -> None:
    """At 25 Gb/s a product is ten packets: 15 windows of one packet and a part, which whole packets do not know."""
    found = watch(long_one(degree, 1, rate_bps=rate * 10**9))
    healthy(found)
    assert found.jain_least > alike
    assert found.resent < 0.15


@pytest.mark.long
@pytest.mark.spec("MRC 1.0", "4")
@pytest.mark.parametrize(("rate", "degree", "alike"), [(25, 24, 0.87), (25, 31, 0.84), (50, 63, 0.77)])
@pytest.mark.parametrize("seed", range(3))
def test_windows_below_a_packet_are_fair(rate: int, degree: int, alike: float, seed: int) -> None:
    """They hear of the receiver's queue once in four round trips, and do not take its changes for jitter of links."""
    found = watch(long_one(degree, seed, rate_bps=rate * 10**9))
    healthy(found)
    assert found.jain_least > alike


@pytest.mark.parametrize("rate", [25, 100])
def test_an_incumbent_gives_way_within_fifty_round_trips(rate: int) -> None:
    _, soon, later = incumbent(4, 0, rate_bps=rate * 10**9)
    assert soon < 1.2
    assert later < 1.2


@pytest.mark.spec("MRC 1.0", "4")
@pytest.mark.parametrize(("rate", "size", "spread"), [(25, 1 << 20, 1.2), (25, 1 << 18, 1.45), (100, 1 << 20, 1.25)])
def test_fifteen_that_begin_together_end_together(rate: int, size: int, spread: float) -> None:
    """On average over seeds: a single one may be far off by chance."""
    spreads = []
    for seed in range(4):
        found = watch(FanIn(15, seed=seed, size=size, rate_bps=rate * 10**9))
        healthy(found)
        spreads.append(found.spread)
    assert sum(spreads) / len(spreads) < spread


@pytest.mark.long
@pytest.mark.spec("MRC 1.0", "4")
@pytest.mark.parametrize(("degree", "goodput"), [(127, 0.886), (255, 0.8)])
def test_no_qp_fails_at_any_fan_in(degree: int, goodput: float) -> None:
    found = watch(FanIn(degree, warm_rtts=30, rtts=200, bin_rtts=100))
    healthy(found)
    assert found.goodput > goodput


@pytest.mark.long
@pytest.mark.spec("MRC 1.0", "4")
def test_less_than_a_packet_per_round_trip_is_left_to_each_of_31() -> None:
    found = watch(FanIn(31, warm_rtts=100, rtts=120))
    healthy(found)
    assert found.goodput > 0.97
    assert found.trimmed < 0.1
    assert found.jain_all > 0.92


@pytest.mark.spec("MRC 1.0", "4")
def test_headers_that_find_no_room_accuse_no_path() -> None:
    """63 first windows are more than queues hold, trimmed or whole: most of their packets are gone without a word."""
    found = watch(FanIn(63, warm_rtts=30, rtts=20))
    healthy(found)
    assert found.dropped > 1_000


@pytest.mark.long
@pytest.mark.spec("MRC 1.0", "4")
@pytest.mark.parametrize("trim_nack", [True, False])
def test_where_switches_drop_nics_need_not_be_told(trim_nack: bool) -> None:
    found = watch(FanIn(7, warm_rtts=100, rtts=120, nic={"trim_nack": trim_nack}, switch=_DROPS))
    assert found.errors == 0
    assert found.retired < 40
    assert found.goodput > 0.95
    assert found.resent < 0.05


@pytest.mark.parametrize(("degree", "near", "planes"), [(2, 1, 1), (4, 2, 2)])
def test_a_near_sender_and_a_far_one_get_about_alike(degree: int, near: int, planes: int) -> None:
    found = watch(FanIn(degree, near=near, planes=planes, warm_rtts=60, rtts=120))
    healthy(found)
    assert all(0.7 < share * degree < 1.4 for share in found.shares)


def test_a_newcomer_gets_its_share_from_the_others() -> None:
    found = watch(FanIn(4, late=1, planes=2, warm_rtts=80, rtts=120))
    healthy(found)
    assert all(0.7 < share * 4 < 1.4 for share in found.shares)


def test_messages_that_end_end_at_about_the_same_time() -> None:
    found = watch(FanIn(7, size=1 << 20))
    healthy(found)
    assert found.spread < 1.6


def test_the_command_prints_a_row_per_fan_in_and_seed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["2", "3", "--rtts", "20", "--warm-rtts", "10", "--seeds", "2", "--shares"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1::2]] == ["2", "2", "3", "3"]
    assert "fan-in" in lines[0]
    assert len(lines) == 9


def test_a_row_shows_what_was_found() -> None:
    found = Found(0.5, 0.25, 0.125, 1, 0.9, 0.95, 0.99, 1.5, 2, 3, 4, ())
    assert row(FanIn(7), found, 1.0).split()[3:6] == ["0.500", "0.250", "0.125"]


@pytest.mark.long
@pytest.mark.parametrize("switch", [{}, _DROPS])
@pytest.mark.parametrize(
    ("degree", "planes", "seed"),
    [(4, 8, 0), (4, 8, 1), (31, 4, 0), (31, 4, 1), (63, 1, 0), (63, 1, 1), (127, 1, 0), (255, 1, 1), (255, 2, 0)],
)
def test_no_qp_of_a_healthy_fabric_ends(degree: int, planes: int, switch: dict[str, bool], seed: int) -> None:
    found = watch(FanIn(degree, seed, planes, warm_rtts=60, rtts=60, switch=switch))
    assert found.errors == 0
    # Packets that are gone without a trim are more there than what arrives on some planes can be compared with.
    assert switch or found.retired <= {(255, 1): 4, (255, 2): 40}.get((degree, planes), 0)


@pytest.mark.long
@pytest.mark.parametrize(
    ("degree", "gbps", "t1s", "planes", "size", "goodput"),
    [(60, 10, 8, 2, 1 << 20, 0.75), (60, 10, 8, 1, 1 << 20, 0.75), (100, 10, 8, 1, 1 << 18, 0.4)],
)
def test_questions_and_answers_do_not_fill_a_receiver_that_drops(
    degree: int, gbps: int, t1s: int, planes: int, size: int, goodput: float
) -> None:
    """The receiver's answers filled its own queue of control packets, and its silence made senders ask more: 34 QPs
    ended in the first, the others had 0.50 and 0.11."""
    found = watch(FanIn(degree, 0, planes, size=size, rate_bps=gbps * 10**9, t1_per_plane=t1s, switch=_DROPS))
    assert found.errors == 0
    assert found.goodput > goodput


def test_the_tables_print_a_row_per_rate_fan_in_and_size(capsys: pytest.CaptureFixture[str]) -> None:
    assert incasts.main(["short", "near", "--rates", "100", "--degrees", "2", "--seeds", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["short:", "100G", "100G", "100G", "near:", "100G"]
