"""tshark for tests: a capture goes in, one row of fields per packet comes out."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.checks.source import ROOT
from tests.support.packages import program

DISSECTORS = (ROOT / "deploy/wireshark/mrc.lua", ROOT / "deploy/wireshark/usid.lua")
# What Wireshark notes when a script of ours has raised.
LUA_ERROR = "_ws.lua.error"
INFO = "_ws.col.Info"
_BETWEEN = "\x1f"
_WALL_S = 60


def tshark(*arguments: str, scripts: Sequence[Path] = DISSECTORS, environment: Mapping[str, str] | None = None) -> str:
    """What tshark prints; it must end well and say nothing of our scripts."""
    command = [str(program("tshark")), *(f"-Xlua_script:{script}" for script in scripts), *arguments]
    done = subprocess.run(command, capture_output=True, timeout=_WALL_S, check=False, env=environment)
    complaints = done.stderr.decode()
    assert done.returncode == 0, complaints
    assert ".lua" not in complaints, complaints
    return done.stdout.decode(errors="replace")


def fields(
    capture: Path,
    names: Sequence[str],
    *arguments: str,
    scripts: Sequence[Path] = DISSECTORS,
    environment: Mapping[str, str] | None = None,
) -> list[dict[str, list[str]]]:
    """For each packet the values of every field, in order; no packet may have made a script raise."""
    asked = [*names, LUA_ERROR]
    extract = [word for name in asked for word in ("-e", name)]
    separators = ("-E", f"separator={_BETWEEN}", "-E", "occurrence=a", "-E", "aggregator=\x1e")
    text = tshark(
        "-r", str(capture), "-Tfields", *separators, *extract, *arguments, scripts=scripts, environment=environment
    )
    rows = []
    for line in text.removesuffix("\n").split("\n") if text else ():
        cells = [cell.split("\x1e") if cell else [] for cell in line.split(_BETWEEN)]
        row = dict(zip(asked, cells, strict=True))
        assert not row.pop(LUA_ERROR)
        rows.append(row)
    return rows
