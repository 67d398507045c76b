"""Size flags and --set become one list, in their order of precedence; EVs as typed are numbers or refused."""

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from mrcfabric.topology_file import load
from orchestrator.cli.flags import cluster_asked_for, duration, ev_number, instant, overrides, wall_time
from orchestrator.cli.main import build_app


def test_only_given_flags_count() -> None:
    assert overrides(None, planes=None, t0=None) == []


def test_set_wins_over_size_flags() -> None:
    flags = overrides(["planes=2"], planes=4, t0=3, rate="25G", link_delay="500ns")
    assert flags == ["planes=4", "t0_per_plane=3", "rate_bps=25G", "link_delay_ns=500ns", "planes=2"]
    topology = load(None, flags)
    assert (topology.planes, topology.t0_per_plane, topology.rate_bps) == (2, 3, 25 * 10**9)


def test_a_mistake_names_the_flag_that_was_written() -> None:
    for flags, written in (
        (overrides(None, planes=99), "--planes 99: planes: 99 will not do"),
        (pickle.loads(pickle.dumps(overrides(None, nics_per_t0=0))), "--nics-per-t0 0: nics_per_t0: 0 will not do"),
        (overrides(["planes=99"], planes=2), "--set planes=99: planes: 99 will not do"),
    ):
        with pytest.raises(ConfigError, match=f"^{written}"):
            load(None, flags)


def test_a_lease_is_for_hosts_of_an_inventory() -> None:
    assert cluster_asked_for(Topology.demo(), None, "ssh") is None
    with pytest.raises(ConfigError, match="--lease 20s: one host has nobody to wait for"):
        cluster_asked_for(Topology.demo(), None, "ssh", lease="20s")


def test_evs_as_typed() -> None:
    assert ev_number("17") == 17
    assert ev_number("0xffffffff") == 0xFFFFFFFF
    for wrong in ("-1", "0x100000000", "ev", ""):
        with pytest.raises(ConfigError):
            ev_number(wrong)


@pytest.mark.parametrize(
    "words",
    [
        ("pauses", "--over"),
        ("top", "--every"),
        ("trace", "--share", "1%", "--for"),
        ("up", "--with-prometheus", "--scrape-interval"),
        ("up", "--lease"),
    ],
)
def test_every_length_of_wall_time_has_a_unit(words: tuple[str, ...], tmp_path: Path) -> None:
    for text, told in (
        ("5", f"{words[-1]} 5: has no unit (5s of wall time?)"),
        ("2.5", f"{words[-1]} 2.5: has no unit (2.5s of wall time?)"),
        ("1e9", "has no unit"),
        ("nan", f"{words[-1]}: 'nan' is no time (wanted: wall time, as 90s or 500ms)"),
        ("999999s", "will not do"),
    ):
        done = CliRunner().invoke(build_app(), [*words, text, "--run-dir", str(tmp_path)])
        assert isinstance(done.exception, ConfigError)
        assert told in str(done.exception)


def test_no_flag_takes_a_bare_number_for_a_length() -> None:
    def commands(group: Any) -> Iterator[Any]:
        for command in group.commands.values():
            yield from commands(command) if hasattr(command, "commands") else (command,)

    app = typer.main.get_command(build_app())
    assert len(list(commands(app))) > 20
    floats = {option.opts[0] for command in commands(app) for option in command.params if option.type.name == "float"}
    assert floats == {"--rate"}, "of snapshots a second"


def test_a_length_has_a_unit() -> None:
    assert instant("--for", None) is None
    assert [instant("--for", text) for text in ("3us", "2s", "7ns", "0")] == [3_000, 2 * 10**9, 7, 0]
    assert duration("--for", None) is None
    assert duration("--for", "3us") == 3_000
    assert [wall_time("--ttl", text) for text in (None, "90s", "500ms")] == [None, 90.0, 0.5]
    for ask, option, text, hint in (
        (instant, "--for", "3", r"--for 3: has no unit \(3us, 3ms or 3ns of fabric time\?\)"),
        (instant, "--at", "soon", "--at: 'soon' is no time"),
        (instant, "--at", "-3us", "is no time"),
        (duration, "--for", "0us", "--for: '0us' is no time at all"),
        (wall_time, "--ttl", "5", r"--ttl 5: has no unit \(5s of wall time\?\)"),
        (wall_time, "--ttl", "0s", "is no time at all"),
        (wall_time, "--ttl", "5.0", "has no unit"),
        (instant, "--at", "1e3", "has no unit"),
    ):
        with pytest.raises(ConfigError, match=hint):
            ask(option, text)
