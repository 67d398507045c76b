"""What tests of rows ask of findings."""

from collections.abc import Sequence

from studies.systems.row import Finding


def missed(found: Sequence[Finding]) -> list[str]:
    """The findings that do not hold, as text; a row that finds nothing has missed everything."""
    if not found:
        return ["nothing was measured"]
    return [f"{one.at}: {one.shown}, wanted {one.wanted}" for one in found if not one.held]
