"""The search for inputs that break one target, by atheris: the child process of `python -m fuzz`.

    python -m fuzz.search TARGET CORPUS FINDINGS SECONDS

Ends with its process: exit code 0 when the time is up, another after the first finding, which lies in FINDINGS then.
"""

import sys

import atheris

TIMEOUT_WALL_S = 20
"""An input that takes longer is a finding."""
MEMORY_MIB = 2_048
"""So is one that takes more memory."""

# Counters are built into what is imported here, and only into the code under test.
with atheris.instrument_imports(include=["mrcfabric", "nicd", "switchd"]):
    from fuzz.targets import TARGETS


def main(name: str, corpus: str, findings: str, seconds: str) -> None:
    """Never returns: libFuzzer ends the process."""
    target = TARGETS[name]
    arguments = [
        sys.argv[0],
        corpus,
        f"-artifact_prefix={findings}/",
        f"-max_total_time={seconds}",
        f"-max_len={target.size_max}",
        f"-timeout={TIMEOUT_WALL_S}",
        f"-rss_limit_mb={MEMORY_MIB}",
        "-print_final_stats=1",
    ]
    atheris.Setup(arguments, target.run)
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
