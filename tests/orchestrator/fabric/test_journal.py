"""The agent's journal: numbered, bounded, told as it happens."""

from typing import Any

from orchestrator.fabric.journal import NOTES_MAX, Journal, describe


def test_notes_are_numbered_and_told() -> None:
    journal = Journal()
    heard: list[dict[str, Any]] = []
    journal.on_note = heard.append
    journal.note("link", 1500, link="h000~p0-t0-0", up=False)
    journal.note("clear", 2000)
    assert [note["n"] for note in journal.after(0)] == [1, 2]
    assert [note["kind"] for note in journal.after(1)] == ["clear"]
    assert heard == journal.after(0)
    assert describe(heard[0]) == "1.500 us  link  link=h000~p0-t0-0 up=False"
    assert describe(heard[1]) == "2.000 us  clear"


def test_the_oldest_is_forgotten_first() -> None:
    journal = Journal()
    for number in range(NOTES_MAX + 5):
        journal.note("tick", number)
    notes = journal.after(0)
    assert len(notes) == NOTES_MAX
    assert notes[0]["n"] == 6
