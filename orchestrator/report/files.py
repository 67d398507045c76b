"""Reports in the file system: written into a folder, and read back for comparison.

Owns the names of the files and what a reader accepts. `report`, `junit` and, for the page, `orchestrator.report` make
the contents.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import yaml

from mrcfabric.errors import ConfigError, RefusedError
from orchestrator.process.new_folders import make, take_back
from orchestrator.report import shape
from orchestrator.report.junit import junit
from orchestrator.report.report import FORMAT, KIND, Report

JSON_NAME = "report.json"
PAGE_NAME = "report.html"
SCENARIO_NAME = "scenario.yaml"
"""The scenario with its overrides, beside its report: `mrcfabric run` takes it to repeat the run."""
REPORT_BYTES_MAX = 256 << 20
"""A longer file is no report."""


def write(report: Mapping[str, Any], folder: Path, page: str = "") -> None:
    """Write `report.json`, `scenario.yaml` and, if there is one, the page. Raises RefusedError when it cannot."""
    texts = {JSON_NAME: json.dumps(report, indent=1) + "\n"}
    if report.get("scenario"):
        texts[SCENARIO_NAME] = yaml.safe_dump(report["scenario"], sort_keys=False, allow_unicode=True)
    if page:
        texts[PAGE_NAME] = page
    write_texts(texts, folder)


def write_texts(texts: Mapping[str, str], folder: Path) -> None:
    """Write files into a folder. Raises RefusedError when it cannot."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            _replace(folder / name, text)
    except OSError as error:
        raise RefusedError(f"the report cannot be written to {folder}: {error.strerror or error}") from error


@contextmanager
def prepared(folder: Path) -> Iterator[None]:
    """Make sure, before anything is started, that a report can be written. Raises ConfigError when it cannot.

    If what is done with it fails before a file is there, the folder goes again.
    """
    made: list[Path] = []
    try:
        made = make(folder)
        _replace(folder / JSON_NAME, None)
    except OSError as error:
        take_back(made)
        what = f"no report can be written there: {error.strerror or error}"
        raise ConfigError(f"folder {folder}", what, "name another with --report") from error
    try:
        yield
    except BaseException:
        take_back(made)
        raise


def _replace(path: Path, text: str | None) -> None:
    """Write in one step: a process killed meanwhile leaves the former file, never half of one.

    None: only test that it works.
    """
    draft = path.with_name(path.name + ".new")
    try:
        draft.write_text(text or "", encoding="utf-8")
        if text is not None:
            draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def write_junit(report: Mapping[str, Any], path: Path) -> None:
    """Write the XML of a report. Raises RefusedError when it cannot."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, junit(report))
    except OSError as error:
        raise RefusedError(f"the JUnit file cannot be written to {path}: {error.strerror or error}") from error


def read(path: Path) -> Report:
    """A report from its file or its folder. Raises ConfigError for a file that is no report of a run."""
    file = path / JSON_NAME if path.is_dir() else path
    try:
        with file.open("rb") as opened:
            raw = opened.read(REPORT_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(str(file), error.strerror or str(error), "report.json of a run, or its folder") from error
    if len(raw) > REPORT_BYTES_MAX:
        raise ConfigError(str(file), "is too long to be a report")
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise ConfigError(str(file), "is not JSON", "report.json of a run, or its folder") from error
    if not isinstance(data, dict) or data.get("kind") != KIND:
        kind = data.get("kind") if isinstance(data, dict) else None
        what = f"is the report of a {kind}" if isinstance(kind, str) else "is no report"
        raise ConfigError(str(file), what, "what `mrcfabric run --report` writes")
    if data.get("format") != FORMAT:
        raise ConfigError(str(file), f"has format {data.get('format')!r}", f"this version reads format {FORMAT}")
    try:
        msgspec.convert(data, shape.Report)
    except msgspec.ValidationError as error:
        raise ConfigError(str(file), f"is damaged: {error}") from error
    return data
