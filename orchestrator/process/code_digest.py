"""Tells versions of the code apart by the sources themselves, committed or not."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
CODE: Final = ("mrcfabric", "nicd", "switchd", "orchestrator", "studies", "swarm")
"""The packages that a run in virtual time is made of; the last two exist in a checkout only."""


def code_digest(packages: Sequence[str] = CODE) -> str:
    """Of all Python sources and system files of these packages, with their names; 32 hexadecimal digits."""
    found = hashlib.blake2b(digest_size=16)
    for package in packages:
        for path in sorted(path for kind in ("*.py", "*.yaml") for path in (ROOT / package).rglob(kind)):
            found.update(path.relative_to(ROOT).as_posix().encode() + b"\0")
            found.update(path.read_bytes() + b"\0")
    return found.hexdigest()
