"""The hint for a name that does not exist: the known name that was probably meant, or which there are.

Pure. Owns what is near: a slip of the fingers, or a part of the name. Nothing is better than a name that only happens
to share some letters.
"""

import difflib
from collections.abc import Iterable
from typing import Final

CUTOFF: Final = 0.72
"""Least ratio of `difflib`. Words that have nothing to do with each other come to 0.71, slips begin at 0.74."""
LISTED_MAX: Final = 64
"""So many words are listed at most: a NIC has three times as many settings, and nobody reads them in a message."""
PART_CHARS_MIN: Final = 3
"""So long is a word at least that counts as a part of another one."""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant; None when nothing is near."""
    meant = _plain(word)
    found = [(_ratio(meant, _plain(one)), one) for one in known if _near(meant, _plain(one))]
    return max(found, key=lambda pair: pair[0])[1] if found else None


def nearest_hint(word: str, known: Iterable[str], otherwise: str | None = None) -> str:
    """`nearest is ...`; when nothing is near `otherwise`, or the known words without it."""
    words = list(known)
    found = nearest(word, words)
    if found is not None:
        return f"nearest is {found}"
    if otherwise is not None:
        return otherwise
    more = f" and {len(words) - LISTED_MAX} more" if len(words) > LISTED_MAX else ""
    return "there are " + ", ".join(words[:LISTED_MAX]) + more


def _plain(word: str) -> str:
    return word.casefold().replace("-", "_")


def _ratio(word: str, known: str) -> float:
    return difflib.SequenceMatcher(None, known, word).ratio()


def _near(word: str, known: str) -> bool:
    part, whole = sorted((word, known), key=len)
    if len(part) >= PART_CHARS_MIN and part in whole:
        return True
    return _one_slip(word, known) or _ratio(word, known) >= CUTOFF


def _one_slip(word: str, known: str) -> bool:
    """Whether one letter differs, or two neighbours have changed places: in short words, ratios do not show it."""
    if len(word) != len(known) or len(word) < PART_CHARS_MIN:
        return False
    apart = [at for at, (one, other) in enumerate(zip(word, known, strict=True)) if one != other]
    if len(apart) == 2:
        first, second = apart
        return second == first + 1 and word[first] == known[second] and word[second] == known[first]
    return len(apart) <= 1
