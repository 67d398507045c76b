"""YAML and flags: every mistake is one line that says where it stands."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from mrcfabric.errors import ConfigError, out_of_order
from mrcfabric.topology import Topology
from mrcfabric.topology_file import FILE_BYTES_MAX, TopologyFile, load, read, read_part

EXAMPLES = Path(__file__).parents[2] / "examples" / "topologies"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "fabric.yaml"


def test_the_example_of_the_demo_is_the_demo() -> None:
    assert load(EXAMPLES / "demo.yaml") == Topology.demo() == load(None)


@pytest.mark.parametrize("path", sorted(EXAMPLES.iterdir()), ids=lambda path: path.stem)
def test_every_example_loads_and_is_named_like_its_file(path: Path) -> None:
    assert load(path).name == path.stem


def test_units_written_out(file: Path) -> None:
    file.write_text(
        "name: 7\nrate_bps: 25 Gb/s\nlink_delay_ns: 0.8us\nusid_block: fcbb:1\nseed: 42\ndilation: 1e3\n"
        "nic: {rto_ns: 0.5ms, cwnd_bytes: 64KiB, window: fixed}\nswitch: {ecn_min: 0.25, ecn: off}\n"
    )
    topology = load(file)
    assert (topology.name, topology.seed) == ("7", "42")
    assert (topology.rate_bps, topology.link_delay_ns) == (25_000_000_000, 800)
    assert topology.usid_block == 0xFCBB0001
    assert topology.dilation == 1000.0
    assert topology.nic == {"rto_ns": 500_000, "cwnd_bytes": 65_536, "window": "fixed"}
    assert topology.switch == {"ecn_min": 0.25, "ecn": False}


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("planes: 8\nt0_per_plan: 2\n", 2, "nearest is t0_per_plane"),
        ("planes: 8\nplanes: 8\n", 2, "twice"),
        ("\n\nplanes: 9\n", 3, "planes: 9 will not do"),
        ("planes: eight\n", 1, "'eight' will not do"),
        ("planes: 0x\n", 1, "will not do"),
        ("planes:\n", 1, "has no value"),
        ("planes: on\n", 1, "planes: is the truth value true"),
        ("planes: 010\n", 1, "planes: 010 is read as 8 by YAML"),
        ("nic:\n  rto_ns: 1:30\n", 2, "1:30 is read as 90 by YAML"),
        ("planes: [8]\n", 1, "one value"),
        ("? [a]\n: 8\n", 1, "one word"),
        ("nic: 5\n", 1, "must be a table"),
        ("nic:\n  rto_ns: 5\n  rto_ns: 6\n", 3, "twice"),
        ("nic:\n  rto_ns: {a: b}\n", 2, "one value"),
        ("- planes\n", 1, "no table"),
        ("planes: 8\n  t0: 3\n", 2, "no YAML"),
        ("planes: 8\nname: [\n", 3, "no YAML"),
        (
            "planes: !!python/name:os.system 8\n",
            1,
            "planes: the tag tag:yaml.org,2002:python/name:os.system means nothing",
        ),
        ("planes: !eight 8\n", 1, "planes: the tag !eight means nothing"),
        ("planes: 2001-09-09\n", 1, "'2001-09-09' will not do"),
        ("planes: !!set {8}\n", 1, "one value"),
        ("planes: !!binary aGVsbG8=\n", 1, "'aGVsbG8=' will not do"),
        ("planes: 2\n---\nplanes: 2\n", 2, "no YAML"),
        ("planes: 6\nevs_per_qp: 128\n", 2, "multiple of the 6 planes (evs_per_qp: 126, reserve_evs_per_qp: 30)"),
        ("name: three\nplanes: 3\n", 2, "evs_per_qp: 128 is no multiple of the 3 planes (evs_per_qp: 126"),
        ("planes: 2001-99-99\n", 1, "cannot be read"),
        ("link_rates_bps:\n  p0-t0-0~p0-t1-0: 25X\n", 2, "25X"),
        ("link_rates_bps:\n  h000~p0-t0-1: 25G\n", 2, "no such link"),
    ],
)
def test_a_mistake_is_shown_with_its_line(file: Path, text: str, line: int, what: str) -> None:
    file.write_text(text)
    with pytest.raises(ConfigError) as refused:
        load(file)
    assert str(refused.value).startswith(f"{file}:{line}: ")
    assert what in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("raw", "what"),
    [
        (b"", "empty"),
        (b"# nothing\n", "empty"),
        (b"\xff\xfe\x00", "no text"),
        (b"name: \x00", "no text"),
        (b"#" * (FILE_BYTES_MAX + 1), "larger"),
        (b"[" * 100_000, "nested"),
    ],
    ids=["empty", "comment", "bytes", "nul", "large", "deep"],
)
def test_what_is_no_topology_at_all(file: Path, raw: bytes, what: str) -> None:
    file.write_bytes(raw)
    with pytest.raises(ConfigError, match=what):
        load(file)


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        load(tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match="directory"):
        load(tmp_path)


@given(st.text(max_size=60))
@settings(max_examples=60)
def test_no_text_fails_otherwise(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "random.yaml"
    path.write_text(text, encoding="utf-8", errors="replace")
    try:
        load(path)
    except ConfigError as error:
        refused = str(error)
        assert "\n" not in refused


def test_flags_lie_over_the_file(file: Path) -> None:
    file.write_text("planes: 4\nnic: {a_ns: 1}\n")
    topology = load(file, ["planes=2", "nic.b_ns=2us", "rate_bps=25G", "seed=1", "switch.ecn=false"])
    assert topology.planes == 2
    assert topology.rate_bps == 25 * 10**9
    assert topology.seed == "1"
    assert topology.nic == {"a_ns": 1, "b_ns": 2000}
    assert topology.switch == {"ecn": False}


@pytest.mark.parametrize(
    ("flag", "what"),
    [
        ("planes", "key=value"),
        ("=", "no setting"),
        ("plane=4", "nearest is planes"),
        ("planes=99", "planes: 99 will not do"),
        ("planes=[1]", "one value"),
        ("planes=", "one value"),
        ("planes=[", r"'\[' will not do"),
        ("nic=3", "nic.KEY=value"),
        ("host.a=3", "no setting"),
    ],
)
def test_wrong_flags(flag: str, what: str) -> None:
    with pytest.raises(ConfigError, match=what) as refused:
        load(None, [flag])
    assert refused.value.where.startswith("--set ")


def test_a_core_s_complaint_finds_its_line(file: Path) -> None:
    file.write_text("nic:\n  rto_ns: 5\n")
    source = read(file, ["switch.ecn_min=2"])
    located: list[Any] = [
        source.locate(ConfigError(where, "too small", "at least 10")).where
        for where in ("nic.rto_ns", "switch.ecn_min", "nic.other")
    ]
    assert located == [f"{file}:2", "--set switch.ecn_min=2", f"{file}: nic.other"]
    # Of two settings that do not go together the operator wrote one.
    told = source.locate(out_of_order("nic.tail_probe_ns", 9, "nic.rto_ns", 5))
    assert str(told).startswith(f"{file}:2: nic.tail_probe_ns: 9 is not below nic.rto_ns, which is 5 (lower ")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("{rto_ns: {a: 1}}", "nic.rto_ns must be one value"),
        ("{rto_ns: }", "nic.rto_ns has no value"),
        ("{rto_ns: 010}", "nic.rto_ns: 010 is read"),
        ("{rto_ns: !x 1}", "nic.rto_ns: the tag !x"),
    ],
)
def test_a_setting_of_a_table_is_called_by_its_whole_name(file: Path, text: str, what: str) -> None:
    file.write_text(f"nic: {text}\n")
    with pytest.raises(ConfigError, match=f"^{file}:1: {what}"):
        load(file)


def test_rates_of_cables_in_files_and_flags(file: Path) -> None:
    file.write_text("link_rates_bps: {p0-t0-0~p0-t1-1: 25G}\n")
    topology = load(file, ["link_rates_bps.h000~p1-t0-0=400M"])
    assert topology.link_rates_bps == {"p0-t0-0~p0-t1-1": 25 * 10**9, "h000~p1-t0-0": 400 * 10**6}


def part(path: Path, text: str, *flags: str) -> TopologyFile:
    return read_part(str(path), yaml.compose(text), flags, "fabric.")


def test_a_topology_can_be_a_table_of_another_file(tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    found = part(path, "planes: 4\nlink_delay_ns: 2us\n", "rate_bps=25G")
    assert (found.topology.planes, found.topology.link_delay_ns, found.topology.rate_bps) == (4, 2000, 25 * 10**9)
    assert found.places == {
        "planes": f"{path}:1",
        "link_delay_ns": f"{path}:2",
        "rate_bps": "--set fabric.rate_bps=25G",
    }
    assert read_part(str(path), None, (), "fabric.").topology == Topology()


def test_such_a_table_can_start_from_a_file_beside(tmp_path: Path) -> None:
    (tmp_path / "small.yaml").write_text("planes: 2\nevs_per_qp: 16\n")
    path = tmp_path / "scenario.yaml"
    found = part(path, "planes: 4\nfile: small.yaml\n")
    assert (found.topology.planes, found.topology.evs_per_qp) == (4, 16)
    assert found.places == {"planes": f"{path}:1", "evs_per_qp": f"{tmp_path / 'small.yaml'}:2"}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("[planes]", "scenario.yaml:1: is no table of settings"),
        ("plains: 4", "scenario.yaml:1: no setting is called plains"),
        ("planes: 99", "scenario.yaml:1: planes: 99 will not do"),
        ("file: [a]", "scenario.yaml:1: file is no file's name"),
        ("file: none.yaml", "none.yaml: cannot be read"),
        ("[[a]]: 3", "a key must be one word"),
    ],
)
def test_mistakes_in_such_a_table(tmp_path: Path, text: str, what: str) -> None:
    with pytest.raises(ConfigError) as caught:
        part(tmp_path / "scenario.yaml", text)
    assert what in str(caught.value)
