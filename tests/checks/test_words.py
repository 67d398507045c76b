"""Words that have no place in the code: names that say nothing, notes to oneself, paths of somebody's machine."""

import re

from tests.checks import source
from tests.checks.source import relative

# A name with one of these says that the author did not know what the thing does.
EMPTY_WORDS = {"util", "utils", "helper", "helpers", "misc"}
# Figures of speech that names once had, and what to say in their place. The list grows; docs/GLOSSARY.md has the words.
REPLACED = {
    "audience": "observer", "agenda": "timetable", "bed": "backend", "beds": "backends", "cargo": "payload",
    "conduct": "runner", "courier": "relay", "couriers": "relays", "crew": "worker group", "desk": "requests",
    "doorkeeper": "connections", "doorstep": "bootstrap", "encounters": "fault traffic", "gatherer": "poller",
    "hired": "started", "hiring": "placement", "lament": "unexpected death", "lookout": "live view",
    "mishap": "fault", "mishaps": "faults, lives", "muster": "build", "payroll": "program results",
    "premises": "share host", "roster": "daemons", "shelf": "scenario files", "staff": "worker processes",
    "venue": "backend", "venues": "backends", "whereabouts": "host map",
}  # fmt: skip
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# Spelled in pieces, so that this file passes its own check.
LEFTOVERS = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK")) + r")\b")
MACHINE_PATHS = re.compile(
    "(?<![A-Za-z0-9_.$}-])/(" + "|".join(("wo" + "rk", "t" + "mp", "ho" + "me", "ro" + "ot", "Us" + "ers")) + r")\b"
)
TRACKER = re.compile("(?i)" + r"\biss" + r"ue #?\d")


def words(name: str) -> set[str]:
    return {word.lower() for word in WORD.findall(name)}


def matching_lines(pattern: re.Pattern[str]) -> list[str]:
    found = []
    for path in source.text_files():
        text = source.text(path)
        found += [
            f"{relative(path)}:{text.count(chr(10), 0, match.start()) + 1}: {match.group()}"
            for match in pattern.finditer(text)
        ]
    return found


def test_names_say_something() -> None:
    empty = [
        f"{relative(path)}:{line} {name}"
        for path in source.python_files()
        for line, name in source.outline(path).names
        if words(name) & EMPTY_WORDS
    ]
    empty += [relative(path) for path in source.python_files() if words(relative(path)) & EMPTY_WORDS]
    assert not empty


def test_names_are_the_words_of_the_field() -> None:
    figures = [
        f"{relative(path)}:{line} {name}: say {', '.join(REPLACED[word] for word in sorted(found))}"
        for path in source.python_files()
        for line, name in [*source.outline(path).names, (1, path.stem)]
        if (found := words(name) & REPLACED.keys())
    ]
    assert not figures


def test_nothing_is_left_for_later() -> None:
    assert not matching_lines(LEFTOVERS)


def test_no_path_of_one_machine() -> None:
    assert not matching_lines(MACHINE_PATHS)


def test_texts_stand_without_the_tracker() -> None:
    """A comment that sends its reader elsewhere explains nothing here."""
    assert not matching_lines(TRACKER)


def test_lines_end_cleanly() -> None:
    ragged = [
        relative(path)
        for path in source.text_files()
        if (text := source.text(path)) and (not text.endswith("\n") or text.endswith("\n\n") or "\r" in text)
    ]
    assert not ragged
