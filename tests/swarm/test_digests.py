"""The same seed gives the same trace digest: whatever the hash seed, whatever the machine, whoever cuts time."""

import json
import os
import subprocess
import sys

import pytest

from swarm.digests import SEEDS, digest_of_seed, names, stored

PROGRAM = "import json; from swarm.digests import digest_of_seed; print(json.dumps(digest_of_seed({seed})))"


@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_the_digest_is_the_stored_one(name: str) -> None:
    series, seed = names()[name]
    assert digest_of_seed(seed, series) == stored()[name], "if this change is meant: python -m swarm --write-digests"


def test_nothing_else_is_stored() -> None:
    assert stored().keys() == names().keys()


@pytest.mark.slow
def test_hash_seeds_do_not_matter() -> None:
    found = []
    for hash_seed in ("0", "1", "4242"):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM.format(seed=SEEDS[0])],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True, text=True, check=True, timeout=60,
        )  # fmt: skip
        found.append(json.loads(done.stdout))
    assert found == [stored()[str(SEEDS[0])]] * 3
