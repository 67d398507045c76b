"""Compiled cores do what the same sources do as pure Python: the traces are equal, in virtual time and on real UDP."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mrcfabric.cores import COMPILED, CORES, PYTHON, VARIABLE
from swarm.digests import names, stored
from tests.integration.test_same_trace import END_NS, SMALL

pytestmark = [pytest.mark.integration, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
CASES = ("1", "3", "8", "systems 3", "systems 6", "systems 98")
"""Of the swarm's stored digests: MRC, go-back-N and selective recovery, switches that pause and switches that drop."""
DIGESTS = f"""
import json
from mrcfabric.cores import CORES
from swarm.digests import digest_of_seed, names
series = names()
print(json.dumps([CORES.run, {{name: digest_of_seed(series[name][1], series[name][0]) for name in {CASES!r}}}]))
"""
REAL = """
import asyncio, json, sys
from pathlib import Path
from mrcfabric.cores import CORES
from tests.integration.test_same_trace import TOPOLOGIES, real
seen = asyncio.run(real(Path(sys.argv[1]), topology=TOPOLOGIES[sys.argv[2]]))
print(json.dumps([CORES.run, seen]))
"""
VIRTUAL = """
import json, sys
from mrcfabric.cores import CORES
from tests.integration.test_same_trace import TOPOLOGIES, virtual
print(json.dumps([CORES.run, virtual(int(sys.argv[1]), TOPOLOGIES[sys.argv[2]])]))
"""


def in_child(cores: str, program: str, *words: str) -> Any:
    """What the program prints under these cores."""
    if cores == COMPILED and CORES.run != COMPILED:
        pytest.skip(f"there are no compiled cores: {CORES.detail}")
    done = subprocess.run(
        [sys.executable, "-c", program, *words], env={**os.environ, VARIABLE: cores}, cwd=ROOT, capture_output=True,
        text=True, check=False, timeout=200,
    )  # fmt: skip
    assert not done.returncode, done.stderr
    ran, found = json.loads(done.stdout)
    assert ran == cores
    return found


@pytest.mark.parametrize("cores", [PYTHON, COMPILED])
@pytest.mark.timeout(240)
def test_both_give_the_stored_digests(cores: str) -> None:
    assert set(CASES) <= names().keys()
    assert in_child(cores, DIGESTS) == {name: stored()[name] for name in CASES}


@pytest.mark.parametrize(
    ("system", "daemons", "virtual"),
    [
        ("mrc", COMPILED, PYTHON),
        pytest.param("mrc", PYTHON, COMPILED, marks=pytest.mark.long),
        pytest.param("ib", COMPILED, PYTHON, marks=pytest.mark.long),
    ],
)
@pytest.mark.timeout(240)
def test_daemons_with_one_give_the_trace_of_virtual_time_with_the_other(
    tmp_path: Path, system: str, daemons: str, virtual: str
) -> None:
    seen = in_child(daemons, REAL, str(tmp_path / "run"), system)
    assert seen["reached"] > END_NS
    expected = in_child(virtual, VIRTUAL, str(seen["reached"]), system)
    assert set(expected) == set(SMALL.node_names())
    assert seen["traces"] == expected
