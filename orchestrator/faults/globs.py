"""Names and globs of `*`, `?` and `[abc]`: whether a name is one of those that are meant.

Pure. Owns what a glob is and how much one may cost. What the names are of is the caller's.
"""

import re
from collections.abc import Callable

from mrcfabric.errors import ConfigError
from mrcfabric.naming import shown

STARS_MAX = 6
"""In one glob: what matching may cost grows with every one."""

_GLOB = re.compile(r"[*?\[]")


def is_plain(pattern: str) -> bool:
    """Whether it is a name, and no glob."""
    return not _GLOB.search(pattern)


def matcher(patterns: tuple[str, ...], exists: Callable[[str], object]) -> Callable[[str], bool]:
    """Whether a name is one of these. Raises ConfigError, by `exists`, for a plain name that there is not."""
    plain = {pattern for pattern in patterns if is_plain(pattern)}
    for name in sorted(plain):
        exists(name)
    globs = [re.compile(_regex(pattern)) for pattern in patterns if pattern not in plain]
    return lambda name: name in plain or any(glob.fullmatch(name) for glob in globs)


def _regex(glob: str) -> str:
    """A glob of `*`, `?` and `[abc]` as a regular expression. Raises ConfigError for one that is none of these."""
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
