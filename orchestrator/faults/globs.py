"""Matches names against plain names and globs of `*`, `?` and `[abc]`.

Pure. Owns the syntax of globs and a bound on the cost of matching. The caller knows what the names stand for.
"""

import re
from collections.abc import Callable

from mrcfabric.errors import ConfigError
from mrcfabric.naming import shown

STARS_MAX = 6
"""How many stars one glob may have: each makes matching more expensive."""

_GLOB = re.compile(r"[*?\[]")


def is_plain(pattern: str) -> bool:
    """Whether a pattern is a plain name, not a glob."""
    return not _GLOB.search(pattern)


def matcher(patterns: tuple[str, ...], exists: Callable[[str], object]) -> Callable[[str], bool]:
    """A function that says whether a name matches one of the patterns.

    Calls `exists` for each plain name; it raises ConfigError for a name that does not exist.
    """
    plain = {pattern for pattern in patterns if is_plain(pattern)}
    for name in sorted(plain):
        exists(name)
    globs = [re.compile(_regex(pattern)) for pattern in patterns if pattern not in plain]
    return lambda name: name in plain or any(glob.fullmatch(name) for glob in globs)


def _regex(glob: str) -> str:
    """Turn a glob of `*`, `?` and `[abc]` into a regular expression. Raises ConfigError for any other glob."""
    if glob.count("*") > STARS_MAX:
        raise ConfigError(shown(glob), "is no glob", f"at most {STARS_MAX} stars")
    found, place = "", 0
    while place < len(glob):
        letter = glob[place]
        if letter == "[":
            end = glob.find("]", place + 2)
            inner = glob[place + 1 : end]
            if end < 0 or not re.fullmatch(r"!?[0-9a-z-]+", inner):
                raise ConfigError(shown(glob), "is no glob", "brackets hold letters and digits: p[0-3]-t0-*")
            try:
                piece = "[" + inner.replace("!", "^", 1) + "]"
                re.compile(piece)
            except re.error:
                raise ConfigError(shown(glob), "is no glob", "a range goes upwards: [0-3]") from None
            found += piece
            place = end
        elif letter == "*":
            found += ".*"
        else:
            found += "." if letter == "?" else re.escape(letter)
        place += 1
    return found
