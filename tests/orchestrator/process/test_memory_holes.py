"""After the holes between objects are filled, new objects lie side by side, whatever was freed before."""

import json
import subprocess
import sys

import pytest

from orchestrator.process.memory_holes import fill_holes
from tests.orchestrator.running import ROOT

PAGE_BYTES = 4096
OBJECTS = 64
PROGRAM = """
import json, sys
from orchestrator.process.memory_holes import fill_holes
size, fill = int(sys.argv[1]), sys.argv[2] == "fill"
many = [b"x" * (size - 33) for _ in range(20_000)]
del many[::97]  # far apart: one hole in each of hundreds of pages
filling = fill_holes() if fill else []
new = [b"x" * (size - 33) for _ in range(64)]
print(json.dumps(sorted(id(one) for one in new)))
"""


def pages_of_new_objects(size: int, how: str) -> int:
    """On how many pages the objects lie that a process makes after it has freed a few of many."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(size), how], capture_output=True, text=True, cwd=ROOT, check=True
    )
    return len({place // PAGE_BYTES for place in json.loads(done.stdout)})


@pytest.mark.parametrize("size", [48, 112, 320, 512, 600, 1000])
def test_new_objects_take_the_pages_that_they_need(size: int) -> None:
    # A few pages more for where they begin, borders between pools, and what the program has freed since.
    assert pages_of_new_objects(size, "fill") <= OBJECTS * (size + 16) // PAGE_BYTES + 8


def test_what_fills_holes_takes_little_memory() -> None:
    """In a process of its own: in one that has run other tests there is more to fill."""
    program = f"""
from {fill_holes.__module__} import fill_holes
fill_holes()
again = fill_holes()  # what the first made is free again, and nothing else
print(sum(one.__sizeof__() for batch in again for one in batch))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True)
    assert 0 < int(done.stdout) < 4 << 20


def test_a_process_without_it_scatters_them() -> None:
    """Otherwise the test above shows nothing."""
    assert pages_of_new_objects(112, "leave") > 10
