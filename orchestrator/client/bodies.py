"""Reads the keys in the body of a request to the agent, and refuses wrong values by the name of their key.

Owns which values a key may have. The endpoints (`orchestrator.agent`) say what they mean. Every function takes the body
and the key, and raises ConfigError.
"""

import json
from collections.abc import Mapping
from typing import Any

from mrcfabric.errors import ConfigError
from mrcfabric.naming import shown
from mrcfabric.units import NEVER


def check_texts(body: Mapping[str, Any]) -> None:
    """Refuse texts that cannot be written as UTF-8: lone halves of surrogate pairs, which bytes of another encoding on
    a command line become."""
    for key, value in body.items():
        try:
            json.dumps({key: value}, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            what = f"{error.object[error.start : error.end]!r} is no character"
            raise ConfigError(shown(key), what, "a text in UTF-8") from None


def text(body: Mapping[str, Any], key: str, default: str | None = None) -> str:
    """A text; required unless there is a default."""
    value = body.get(key, default)
    if not isinstance(value, str):
        raise ConfigError(key, "is missing" if value is None else f"{value!r} is no text")
    return value


def table(body: Mapping[str, Any], key: str, default: dict[str, Any] | None = None) -> dict[str, Any]:
    """A table; required unless there is a default."""
    value = body.get(key, default)
    if not isinstance(value, dict):
        raise ConfigError(key, "is missing" if value is None else f"{value!r} is no table")
    return value


def texts(body: Mapping[str, Any], key: str) -> list[str] | None:
    """A list of texts; None when the key is missing."""
    value = body.get(key)
    if value is not None and not (isinstance(value, list) and all(isinstance(one, str) for one in value)):
        raise ConfigError(key, f"{value!r} is no list of texts")
    return value


def whole(body: Mapping[str, Any], key: str, least: int = 0) -> int | None:
    """A whole number from `least` up to the largest instant; None when the key is missing."""
    value = body.get(key)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or not least <= value < NEVER):
        raise ConfigError(key, f"{value!r} is no whole number from {least}")
    return value


def seconds(body: Mapping[str, Any], key: str, default: float, most: float) -> float:
    """A wall time above 0 and up to `most`."""
    value = body.get(key, default)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= most:
        raise ConfigError(key, f"{value!r} will not do", f"seconds of wall time, at most {most:g}")
    return value
