"""Folders that a command makes before it can know that it will succeed, and takes back when it does not."""

from pathlib import Path


def make(path: Path, mode: int = 0o777) -> list[Path]:
    """Make a folder with its parents, unless it is there; `mode` is that of the folder itself.

    Returns those that were made, the deepest first. Raises OSError.
    """
    missing = [one for one in (path, *path.parents) if not one.exists()]
    path.mkdir(mode=mode, parents=True, exist_ok=True)
    return missing


def take_back(made: list[Path]) -> None:
    """Remove those of the folders that are empty, the deepest first."""
    for one in made:
        try:
            one.rmdir()
        except OSError:
            return
