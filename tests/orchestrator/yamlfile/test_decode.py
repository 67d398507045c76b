"""What is said of a value that will not do."""

import pytest

from mrcfabric.errors import ConfigError
from orchestrator.scenario.model import ENTRIES, Expect, ScenarioFile
from orchestrator.yamlfile.decode import by_kind, decode, wanted
from orchestrator.yamlfile.document import Document, Spot
from orchestrator.yamlfile.spelling import Length

SPOT = Spot(Document("f.yaml"), ("method", 0))


def said(**keys: object) -> str:
    with pytest.raises(ConfigError) as caught:
        by_kind(SPOT, {"name": "a", "fault": "loss", **keys}, "fault", ENTRIES, "kind of fault")
    return str(caught.value).removeprefix("f.yaml: method[0]")


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ({"selector": {"lin": "x"}}, ".selector.lin: no such key here (nearest is links)"),
        ({"at": 5}, ".at: 5 will not do (wanted: a length, as 20rtt, 5us or 1s)"),
        ({"fault": "los"}, ".fault: no kind of fault is called los (nearest is loss)"),
        (
            {"fault": False},
            (
                ".fault: is the truth value false (wanted: a kind of fault; YAML reads no and off as false; "
                "put a text in quotes)"
            ),
        ),
        ({"mode": "two"}, ".mode: two will not do (wanted: one of one, all, fixed, fixed-percent, random-max-percent)"),
        ({"toxicity": 4}, ".toxicity: 4 will not do (wanted: a number (0 to 1) or a share, as 1% or 0.01)"),
        ({"times": 0}, ".times: 0 will not do (wanted: a whole number (1 to 1000000))"),
        (
            {"selector": []},
            (
                ".selector: is a list (wanted: a table of links, nodes, nic_ports, tier, plane, of, evs_of, hosts, "
                "labels)"
            ),
        ),
        ({"ramp": {}}, ".ramp: to is missing (to: a table of toxicity, burst_packets)"),
        (
            {"name": True},
            (
                ".name: is the truth value true (wanted: a name of letters, digits, - and _, at most 64; "
                "YAML reads yes and on as true; put a text in quotes)"
            ),
        ),
        ({"name": "a b"}, ".name: a b will not do (wanted: a name of letters, digits, - and _, at most 64)"),
        ({"period": "1us"}, ".period: no such key here (there are"),
    ],
)
def test_complaints(keys: dict[str, object], text: str) -> None:
    assert said(**keys).startswith(text)


def test_an_entry_says_of_which_kind_it_is() -> None:
    for entry, text in ((3, "is no table"), ({"name": "a"}, "does not say which fault")):
        with pytest.raises(ConfigError, match=text):
            by_kind(SPOT, entry, "fault", ENTRIES, "kind of fault")


def test_lists_are_followed() -> None:
    with pytest.raises(ConfigError, match=r"method\[0\].expect\[1\].measure: 3 will not do"):
        decode(SPOT, {"name": "a", "expect": [{"measure": "x"}, {"measure": 3}]}, ScenarioFile)
    with pytest.raises(ConfigError, match=r"method\[0\]: measure is missing"):
        decode(SPOT, {}, Expect)


def test_types_in_words() -> None:
    assert wanted(Length) == "a length, as 20rtt, 5us or 1s"
    assert wanted(list[int] | None) == "a list of a whole number"
    assert wanted(bool | str) == "true or false or a text"
