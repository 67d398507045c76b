"""The kinds of error, kept apart.

- `WireError`: bytes from outside are wrong. `mrcfabric.wire` raises it, and a core catches it in one place, where it
  takes a packet, and turns it into a counted, named drop.
- A peer that breaks the protocol raises no exception: it triggers a transition of the QP's state table.
- `ConfigError`: the operator made a mistake. One line: where, what, hint; exit code 2; nothing started.
- `RefusedError`: a running daemon cannot carry out a command. It goes back to the client.
- Our own bugs are `assert`s; the daemon dies with a traceback and the orchestrator reports it.
"""

import re
from typing import Final

WORD_SIGNS_MAX: Final = 300
"""The longest word of a message that is told whole. Paths may be long."""
TEXT_SIGNS_MAX: Final = 4000
"""The longest message that is told whole. Some list many choices."""
_LONG_WORD: Final = re.compile(rf"\S{{{WORD_SIGNS_MAX + 1},}}")


class WireError(ValueError):
    """Bytes that are no well-formed packet; `reason` is a short name fit for a counter."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class ConfigError(Exception):
    """A mistake of the operator: where it is, what it is, and how to mend it."""

    def __init__(self, where: str, what: str, hint: str = "", also: tuple[str, ...] = ()) -> None:
        super().__init__(brief(one_line(f"{where}: {what}" + (f" ({hint})" if hint else ""))))
        self.where = where
        self.what = what
        self.hint = hint
        self.also = also
        """Other settings that it is about: the operator may have written one of these, and `where` follows from it."""

    def __reduce__(self) -> tuple[type["ConfigError"], tuple[str, str, str, tuple[str, ...]]]:
        return type(self), (self.where, self.what, self.hint, self.also)


def misfit(where: str, value: object, wanted: str) -> ConfigError:
    """A value of a kind or a size that does not fit there. `wanted`: which would."""
    if isinstance(value, bool):
        # Nobody may have written `true`.
        word, read = ("true", "yes and on") if value else ("false", "no and off")
        hint = f"wanted: {wanted}; YAML reads {read} as {word}; put a text in quotes"
        return ConfigError(where, f"is the truth value {word}", hint)
    return ConfigError(where, f"{value!r} will not do", f"wanted: {wanted}")


def out_of_order(less: str, low: float | str, more: str, high: float | str, *, equal: bool = False) -> ConfigError:
    """Two settings with their values, the first of which must be below the second; `equal`: or the same."""
    what = f"{low} is {'above' if equal else 'not below'} {more}, which is {high}"
    return ConfigError(less, what, f"lower {less}, or raise {more}", (more,))


def bounds(least: int | None, most: int | None) -> str:
    """What a whole number may be. At least one of the two is given."""
    if least is None or most is None:
        return f"at most {most}" if least is None else f"at least {least}"
    return f"{least} to {most}"


def one_line(text: str) -> str:
    """The text with every sign that could move a cursor or end a line written out."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


def brief(text: str) -> str:
    """The text without the middle of words, and of the whole, that nobody would read to the end.

    The end of a word stays, because a path has its file there; so does the end of the text, because the hint is there.
    """
    text = _LONG_WORD.sub(lambda word: _without_middle(word[0], WORD_SIGNS_MAX), text)
    return _without_middle(text, TEXT_SIGNS_MAX)


def _without_middle(text: str, most: int) -> str:
    kept = (most - 3) // 2
    return text if len(text) <= most else f"{text[:kept]}...{text[-kept:]}"


class RefusedError(Exception):
    """A well-formed request that a daemon refuses, with the reason as text."""
