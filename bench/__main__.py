"""`python -m bench`: run the sections one after the other, print a table, write `bench.json`.

Each section runs in a process of its own, so that none inherits memory, loops or a CPU from another. A section that
fails says why, the others still run, and the exit code is 1.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from bench.machine import Watch, describe, idle_load, noise
from bench.report import flat, render
from bench.section import ORDER, SECTIONS, USUAL, requirements

SECTION_WALL_S_MAX = 150
PLAIN_COLUMNS = 140
"""Width of the table where there is no terminal to ask."""


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Measure what mrcfabric reaches on this machine, beside what is possible."
    )
    usual = ",".join(USUAL)
    parser.add_argument("--only", default=usual, help=f"sections, of {','.join(ORDER)} (default: {usual})")
    parser.add_argument("--json", type=Path, default=Path("bench.json"), help="where to write the figures")
    arguments = parser.parse_args(argv)
    chosen = [name.strip() for name in arguments.only.split(",") if name.strip()]
    unknown = [name for name in chosen if name not in SECTIONS]
    if unknown or not chosen:
        parser.error(f"no such section: {', '.join(unknown) or 'none given'}; there are {', '.join(ORDER)}")
    arguments.sections = requirements(chosen)
    return arguments


def run_section(name: str) -> dict[str, Any]:
    """The figures of one section, or `{"error": why}`."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "bench.section", name],
            capture_output=True,
            text=True,
            timeout=SECTION_WALL_S_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"not done within {SECTION_WALL_S_MAX} s"}
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return {"error": f"exit code {done.returncode}: {last}"}
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmarks; returns the exit code."""
    arguments = _arguments(argv)
    console = Console()
    if not console.is_terminal:
        console = Console(width=PLAIN_COLUMNS)
    machine = describe()
    console.print(f"{machine['cpu']}, {machine['cpus']} CPUs, Linux {machine['kernel']}, Python {machine['python']}")
    console.print(f"cores: {machine['cores']}")
    warnings = [f"before the start {what}" for what in [noise(idle_load())] if what]
    results: dict[str, dict[str, Any]] = {}
    for name in arguments.sections:
        watch, started_s = Watch(), time.monotonic()
        console.print(f"[dim]{name}: {SECTIONS[name].about} ...[/]")
        results[name] = run_section(name)
        results[name]["wall_s"] = round(time.monotonic() - started_s, 1)
        results[name]["others"] = watch.others()
        if what := noise(results[name]["others"]):
            warnings.append(f"during {name} {what}")
    document: dict[str, Any] = {"machine": machine, "warnings": warnings, **results}
    document.update(flat(document))
    console.print(render(document))
    for warning in warnings:
        console.print(f"[yellow]noisy machine:[/] {warning}; figures may be too low")
    failed = [name for name in arguments.sections if "error" in results[name]]
    for name in failed:
        console.print(f"[red]{name}:[/] {results[name]['error']}")
    arguments.json.write_text(json.dumps(document, indent=2) + "\n")
    console.print(f"written to {arguments.json}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
