"""The published JSON Schema of a journey: `python -m tools.schemas.journeys > docs/schema/journeys.json`."""

from typing import Final

from orchestrator.tracing.journey import Journey
from tools.schemas import records

TITLE: Final = "Journey of a packet, format 1"
DESCRIPTION: Final = (
    "One line of `mrcfabric trace --json`: one PSN of one QP, from its first sending to its acknowledgement. Instants "
    "and spans are fabric time in nanoseconds; nodes go by their names, ports and planes by their numbers."
)


def document() -> str:
    """The schema as text, with a newline at the end."""
    return records.document(Journey, TITLE, DESCRIPTION, ("began_ns", "total_ns", "paused_ns"))


if __name__ == "__main__":
    print(document(), end="")
