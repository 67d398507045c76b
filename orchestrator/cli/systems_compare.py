"""A scenario carried out on several systems, one after the other, for a command.

Owns the order of the runs, where each leaves its report, and what becomes of one that cannot take place. How a scenario
is carried out is `orchestrator.cli.scenario_run`'s, what is compared `orchestrator.report.systems`'s.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from mrcfabric import bundles
from mrcfabric.errors import ConfigError, RefusedError, one_line

if TYPE_CHECKING:
    from orchestrator.report.systems import Ran
    from orchestrator.runs.backends import OpenBackend
    from orchestrator.runs.observer import RunObserver
    from orchestrator.scenario.plan import Plan

JSON_NAME: Final = "systems.json"
FABRIC_FOLDER: Final = "fabric"
"""The daemons' folder inside that of a system's report."""
LEAST: Final = 2


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be compared."""

    file: Path
    systems: Sequence[str]
    """Names or paths, as `names_of` gives them."""
    settings: Sequence[str] = ()
    """`--set` flags, for all of them."""
    seed: str | None = None
    sim: bool = False
    """In virtual time; else on real daemons."""
    folder: Path | None = None


def names_of(text: str) -> list[str]:
    """The systems of `mrc,roce,./own.yaml`. Raises ConfigError for fewer than two, or the same twice."""
    names = [word.strip() for word in text.split(",")]
    where = f"--systems {text}"
    if not all(names):
        raise ConfigError(where, "has an empty place", f"as {','.join(bundles.names()[:LEAST])}")
    if len(names) < LEAST:
        raise ConfigError(where, "is one system, and a comparison needs two", f"`mrcfabric run --system {text}`")
    for name in names:
        bundles.file_of(name, f"--systems {name}")
    labels = [Path(name).stem if bundles.is_path(name) else name for name in names]
    for label in labels:
        if labels.count(label) > 1:
            raise ConfigError(where, f"{label} stands there twice", "files of the same name need other names")
    return names


def plans_of(asked: Asked) -> list["Plan"]:
    """The scenario on every system. Raises ConfigError, before anything is started, for one that makes no sense."""
    from orchestrator.scenario.resolve import load

    return [load(str(asked.file), [*asked.settings, f"system={name}"], seed=asked.seed) for name in asked.systems]


def carried_out(
    asked: Asked, observer: Callable[[], "RunObserver"], show: Callable[[dict[str, Any]], None] = lambda _data: None
) -> tuple[dict[str, Any], Path]:
    """The comparison as plain data and where it was written, with a report per system.

    `observer` shows each run. `show` gets the comparison before it is written, which may fail. Raises ConfigError
    before anything is started, SystemExit when it cannot be written and after a signal.
    """
    from orchestrator.cli import scenario_run
    from orchestrator.process.run_folder import default_path
    from orchestrator.report import files, systems, systems_page

    plans = plans_of(asked)
    folder = asked.folder or default_path(f"{plans[0].name}-systems")
    with files.prepared(folder):
        replaces = (folder / JSON_NAME).exists()
        runs = _runs(asked, plans, folder, observer)
        data = systems.record(runs)
        show(data)
        texts = {JSON_NAME: json.dumps(data, indent=1) + "\n", systems_page.PAGE_NAME: systems_page.render(data, runs)}
        try:
            files.write_texts(texts, folder)
        except RefusedError as error:
            raise scenario_run.not_run(error) from None
    if replaces:
        kept = one_line(str(folder))
        typer.echo(f"the comparison of an earlier run in {kept} is replaced; -o DIR keeps both", err=True)
    return data, folder


def _runs(asked: Asked, plans: list["Plan"], folder: Path, observer: Callable[[], "RunObserver"]) -> "list[Ran]":
    """Each plan carried out, up to a signal."""
    from orchestrator.cli import scenario_run
    from orchestrator.report import files, systems

    runs: list[Ran] = []
    for plan, name in zip(plans, asked.systems, strict=True):
        own = folder / plan.topology.system
        about = _about(name)
        try:
            done = scenario_run.carried_out(_backend(asked, plan, own), observer(), own, flag="")
        except scenario_run.CouldNotRunError as error:
            runs.append(systems.Ran(plan.topology.system, about, plan, why=error.why))
            continue
        place = f"{own.name}/{files.PAGE_NAME}"
        runs.append(systems.Ran(plan.topology.system, about, plan, done.recording, done.report, place))
        if done.code > scenario_run.EXIT_SIGNAL:  # a signal ends the comparison, not one run of it
            break
    return runs


def _about(name: str) -> str:
    from mrcfabric.topology_file import read_system

    return read_system(name).about


def _backend(asked: Asked, plan: "Plan", folder: Path) -> "OpenBackend":
    from orchestrator.runs.backends import launched, simulated

    return simulated(plan) if asked.sim else launched(plan, folder / FABRIC_FOLDER)
