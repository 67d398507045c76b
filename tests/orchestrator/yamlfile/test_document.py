"""Reading YAML: plain data, lines, flags, and what is refused."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.errors import ConfigError
from orchestrator.yamlfile.document import Spot, dotted, parse, read, top_keys

TEXT = """\
name: a
workload:
  - {name: train, steps: 3}
  - name: other
    steps: 4
fabric: {planes: 4}
"""


LAUGHS = "a0: &a0 1\n" + "".join(f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 8)}]\n" for n in range(6))
"""A few lines that stand for a quarter of a million values."""


def refused(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse("f.yaml", text)
    return str(caught.value)


def with_flags(tmp_path: Path, *flags: str) -> dict[str, object]:
    path = tmp_path / "f.yaml"
    path.write_text(TEXT)
    return read(str(path), flags).root


def test_plain_data_and_the_line_of_every_value() -> None:
    document = parse("f.yaml", TEXT)
    assert document.root == {"name": "a", "workload": [{"name": "train", "steps": 3}, {"name": "other", "steps": 4}]}
    assert document.fabric is not None
    assert document.where(("workload", 1, "steps")) == "f.yaml:5: workload[1].steps"
    assert document.where(("workload", 0, "unknown")) == "f.yaml:3: workload[0].unknown"
    assert document.where(()) == "f.yaml"


def test_a_spot_complains_where_it_stands() -> None:
    spot = Spot(parse("f.yaml", TEXT)) / "workload" / 0
    assert str(spot.wrong("is bad", "be good")) == "f.yaml:3: workload[0]: is bad (be good)"
    assert str(spot.about(ConfigError("h9", "no such", "h0"))) == "f.yaml:3: workload[0]: h9: no such (h0)"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "is empty"),
        ("[1, 2]", "is no table"),
        ("a: [", "is no YAML"),
        ("a: 1\na: 2", "stands here twice"),
        ("? [a]\n: 2", "a key must be one word"),
        ('"\\ud800": 2', "a key must be one word"),
        ("a:", "has no value"),
        ("a: [1, 010]", "010 is read as 8 by YAML"),
        ("a: .nan", "is no finite number"),
        ("a: 99999999999999999999", "is too large a number"),
        ("a: !!python/object:os.system x", "means nothing here"),
        ('a: "\\ud800"', "signs that are no text"),
        ("a: &x [*x]", "nested too deeply"),
        ("[" * 1200, "nested too deeply"),
        (LAUGHS, "holds more than"),
    ],
)
def test_what_is_no_scenario_is_refused(text: str, what: str) -> None:
    assert what in refused(text)


def test_a_date_is_a_text_and_words_of_yaml_can_be_keys() -> None:
    assert parse("f", "a: 2026-01-01\noff: true").root == {"a": "2026-01-01", "off": True}


def test_flags_reach_tables_and_entries_by_name_or_position(tmp_path: Path) -> None:
    changed = with_flags(tmp_path, "workload.train.steps=5", "workload.1.steps=[a, b]", "name=b", "length=3rtt")
    assert changed == {
        "name": "b",
        "workload": [{"name": "train", "steps": 5}, {"name": "other", "steps": ["a", "b"]}],
        "length": "3rtt",
    }


def test_flags_of_the_fabric_are_kept_for_its_reader(tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    path.write_text(TEXT)
    assert read(str(path), ["fabric.planes=2"]).fabric_flags == ["planes=2"]


@pytest.mark.parametrize(
    ("flag", "what"),
    [
        ("name", "is no setting"),
        ("=3", "is no setting"),
        ("\udc80=3", "is no setting"),
        ("fabric=3", "fabric is a table"),
        ("mtu_bytes=1024", "mtu_bytes is a setting of the fabric (--set fabric.mtu_bytes=1024)"),
        ("name.x=3", "is one value, not a table"),
        ("wrkload.train.steps=3", "there is no wrkload"),
        ("workload.trian.steps=3", "no entry is called trian (nearest is train)"),
        ("workload.7.steps=3", "no entry is called 7"),
        ("name=", "a value is wanted"),
        ("name=~", "has no value"),
        ("workload.train.steps=1:30", "1:30 is read as 90 by YAML"),
    ],
)
def test_flags_that_lead_nowhere(tmp_path: Path, flag: str, what: str) -> None:
    with pytest.raises(ConfigError, match="--set") as caught:
        with_flags(tmp_path, flag)
    assert what in str(caught.value)


def test_a_flag_that_is_no_yaml_is_a_text(tmp_path: Path) -> None:
    assert with_flags(tmp_path, "name=[")["name"] == "["


def test_words() -> None:
    assert dotted(("method", 2, "at")) == "method[2].at"


def test_the_outermost_keys_tell_kinds_of_files_apart(tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    for text, keys in ((TEXT, {"name", "workload", "fabric"}), ("[a]", set()), ("a: [", set()), ("[" * 1200, set())):
        path.write_text(text)
        assert top_keys(str(path)) == keys
    assert top_keys("nowhere.yaml") == set()


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read("nowhere.yaml")


SIGNS = ("&a", "*a", "[", "]", "{", "}", ":", "-", ",", "? ", "|", ">", "%", "@", "\n", "a", "1", "'", '"', "!", " ")


@given(st.text(max_size=80) | st.lists(st.sampled_from(SIGNS)).map("".join))
def test_no_text_gives_anything_but_a_complaint(text: str) -> None:
    said = ""
    try:
        parse("f.yaml", text)
    except ConfigError as error:
        said = str(error)
    assert "\n" not in said
