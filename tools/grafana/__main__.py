"""`python -m tools.grafana --write` writes the boards that ship; without it the stale ones are named."""

import argparse
from pathlib import Path

from tools.grafana.catalogue import FOLDER, files


def stale(folder: Path) -> list[Path]:
    """The files below the folder that differ from what the code makes: missing, different, or of no board."""
    wanted = {folder / name: text for name, text in files().items()}
    found = set(folder.glob("*.json"))
    different = {path for path, text in wanted.items() if path not in found or path.read_text("utf-8") != text}
    return sorted(different | (found - wanted.keys()))


def write(folder: Path) -> None:
    """Write all boards into the folder, and remove its other JSON files."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in stale(folder):
        path.unlink(missing_ok=True)
    for name, text in files().items():
        (folder / name).write_text(text, encoding="utf-8")


def main() -> int:
    """Write or compare; returns 0 when no file is stale at the end."""
    parser = argparse.ArgumentParser(prog="python -m tools.grafana", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write them")
    folder = Path(__file__).parents[2] / FOLDER
    if parser.parse_args().write:
        write(folder)
    old = stale(folder)
    for path in old:
        print(f"stale: {path}")
    return 1 if old else 0


if __name__ == "__main__":
    raise SystemExit(main())
