"""All boards, and the names of their files."""

from typing import Final

from tools.grafana import faults, fidelity, nics, overview, planes, systems, training

BOARDS: Final = (overview.BOARD, planes.BOARD, nics.BOARD, faults.BOARD, training.BOARD, systems.BOARD, fidelity.BOARD)
"""In the order in which somebody on call opens them."""
FOLDER: Final = "deploy/grafana/dashboards"
"""Where they ship, relative to the top of the project."""


def files() -> dict[str, str]:
    """Name -> text of every file."""
    return {f"{board.uid.removeprefix('mrcfabric-')}.json": board.text() for board in BOARDS}
