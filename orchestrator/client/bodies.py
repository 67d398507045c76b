"""The keys in the body of a request to the agent: read one by one, and refused by name when they will not do.

Owns which values a key may have; what they mean is the endpoints' (`orchestrator.agent`).
Every function takes the body and the key, and raises ConfigError.
"""

from collections.abc import Mapping
from typing import Any

from mrcfabric.errors import ConfigError
from mrcfabric.units import NEVER


def text(body: Mapping[str, Any], key: str, default: str | None = None) -> str:
    """A text; without a default it must be there."""
    value = body.get(key, default)
    if not isinstance(value, str):
        raise ConfigError(key, "is missing" if value is None else f"{value!r} is no text")
    return value


def table(body: Mapping[str, Any], key: str, default: dict[str, Any] | None = None) -> dict[str, Any]:
    """A table; without a default it must be there."""
    value = body.get(key, default)
    if not isinstance(value, dict):
        raise ConfigError(key, "is missing" if value is None else f"{value!r} is no table")
    return value


def texts(body: Mapping[str, Any], key: str) -> list[str] | None:
    """A list of texts, if it is there."""
    value = body.get(key)
    if value is not None and not (isinstance(value, list) and all(isinstance(one, str) for one in value)):
        raise ConfigError(key, f"{value!r} is no list of texts")
    return value


def whole(body: Mapping[str, Any], key: str, least: int = 0) -> int | None:
    """A whole number from `least` that an instant can have, if it is there."""
    value = body.get(key)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or not least <= value < NEVER):
        raise ConfigError(key, f"{value!r} is no whole number from {least}")
    return value


def seconds(body: Mapping[str, Any], key: str, default: float, most: float) -> float:
    """Wall time above 0."""
    value = body.get(key, default)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= most:
        raise ConfigError(key, f"{value!r} will not do", f"seconds of wall time, at most {most:g}")
    return value
