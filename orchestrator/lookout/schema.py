"""The published JSON Schema of a snapshot: `python -m orchestrator.lookout.schema > docs/schema/snapshot.json`."""

from typing import Final

from orchestrator import record_schema
from orchestrator.lookout.snapshot import Snapshot

TITLE: Final = "Snapshot of a running fabric, format 1"
DESCRIPTION: Final = (
    "What one look at a fabric shows. Instants and spans are fabric time in nanoseconds, rates are of fabric time, "
    "keys with nodes and links are their names."
)


def document() -> str:
    """The schema as text, with a newline at the end."""
    return record_schema.document(Snapshot, TITLE, DESCRIPTION)


if __name__ == "__main__":
    print(document(), end="")
