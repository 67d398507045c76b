"""Every key of a request is read as what it has to be, and a mistake is called by the key's name."""

from typing import Any

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.units import NEVER
from orchestrator.client import bodies


@pytest.mark.parametrize(
    ("read", "given", "more", "found"),
    [
        (bodies.text, {"key": "a"}, (), "a"),
        (bodies.text, {}, ("",), ""),
        (bodies.table, {"key": {"a": 1}}, (), {"a": 1}),
        (bodies.table, {}, ({},), {}),
        (bodies.texts, {"key": ["a"]}, (), ["a"]),
        (bodies.texts, {}, (), None),
        (bodies.whole, {"key": 0}, (), 0),
        (bodies.whole, {}, (1,), None),
        (bodies.seconds, {"key": 0.5}, (2.0, 3.0), 0.5),
        (bodies.seconds, {}, (2.0, 3.0), 2.0),
    ],
)
def test_a_key_is_read_or_has_its_default(read: Any, given: dict[str, Any], more: tuple[Any, ...], found: Any) -> None:
    assert read(given, "key", *more) == found


@pytest.mark.parametrize(
    ("read", "wrong", "more", "complaint"),
    [
        (bodies.text, 7, (), "key: 7 is no text"),
        (bodies.text, None, (), "key: is missing"),
        (bodies.table, [], (), r"key: \[\] is no table"),
        (bodies.table, None, (), "key: is missing"),
        (bodies.texts, "ab", (), "is no list of texts"),
        (bodies.texts, [1], (), "is no list of texts"),
        (bodies.whole, True, (), "True is no whole number from 0"),
        (bodies.whole, 1.0, (), "is no whole number from 0"),
        (bodies.whole, 0, (1,), "0 is no whole number from 1"),
        (bodies.whole, NEVER, (), "is no whole number"),
        (bodies.seconds, 0, (1.0, 2.0), "at most 2"),
        (bodies.seconds, True, (1.0, 2.0), "will not do"),
        (bodies.seconds, float("nan"), (1.0, 2.0), "will not do"),
    ],
)
def test_what_will_not_do_is_refused(read: Any, wrong: Any, more: tuple[Any, ...], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        read({"key": wrong}, "key", *more)


def test_a_text_that_is_no_text_is_refused_by_its_key() -> None:
    bodies.check_texts({"a": "\u00e4\U0001f600\n", "b": [1, None, {"c": "x"}], "d": float("inf")})
    for value in ("\udcff", ["a", "\ud800"], {"c": {"\udcff": 1}}):
        with pytest.raises(ConfigError, match=r"^seed: '.ud.*' is no character \(a text in UTF-8\)$"):
            bodies.check_texts({"id": "f", "seed": value})
