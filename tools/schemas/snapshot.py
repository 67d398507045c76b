"""The published JSON Schema of a snapshot: `python -m tools.schemas.snapshot > docs/schema/snapshot.json`."""

from typing import Final

from orchestrator.live.snapshot import Snapshot
from tools.schemas import records

TITLE: Final = "Snapshot of a running fabric, format 1"
DESCRIPTION: Final = (
    "What one look at a fabric shows. Instants and spans are fabric time in nanoseconds, rates are of fabric time, "
    "keys with nodes and links are their names."
)


def document() -> str:
    """The schema as text, with a newline at the end."""
    return records.document(Snapshot, TITLE, DESCRIPTION)


if __name__ == "__main__":
    print(document(), end="")
