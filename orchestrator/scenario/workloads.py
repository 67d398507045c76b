"""Workloads: turns entries of `workload` into programs.

Owns which NICs are ranks, the spelling of figures, and trace files. `nicd.programs.catalogue` knows what a program does
with its figures and which of them fit together; `orchestrator.scenario.process_kinds` knows it of processes.

A trace is a list of messages in the scenario itself, or a CSV file beside it whose first line names the columns from,
to, bytes and at.
"""

import csv
import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from mrcfabric.errors import ConfigError
from mrcfabric.naming import nic_name, shown
from mrcfabric.topology import Topology
from mrcfabric.topology_file import text_of
from nicd.programs import catalogue
from nicd.programs.kind import TRACE_MESSAGES_MAX, TraceFigure
from nicd.programs.program import RANKS_MAX, Program
from orchestrator.scenario import process_kinds
from orchestrator.scenario.method import Site
from orchestrator.scenario.model import KINDS_OF_WORK, Message
from orchestrator.yamlfile.decode import decode
from orchestrator.yamlfile.document import Document, Spot
from orchestrator.yamlfile.spelling import amount, figure_of, spelled

_HEADINGS: Final = ("from", "to", "bytes", "at")


def program_of(site: Site, spot: Spot, entry: Any, number: int) -> Program:
    """The program of an entry; `number` distinguishes it from the others of its fabric. Raises ConfigError."""
    ranks = ranks_of(site.topology, spot / "ranks", entry.ranks)
    figures: dict[str, Any] = {}
    for name, row in KINDS_OF_WORK[entry.kind].figures.items():
        key = spelled(name)
        written = getattr(entry, key)
        if written is None:
            continue
        if isinstance(row, TraceFigure):
            figures[name] = [_message(site, spot / key / place, ranks, one) for place, one in enumerate(written)]
        else:
            figures[name] = figure_of(name, written, site.scale)
    begin_ns = site.begin_ns + site.scale.length(entry.begin)
    program = Program(entry.name, entry.kind, number, ranks, begin_ns, site.seed, figures, entry.qps, entry.profile)
    try:
        (process_kinds.check if program.kind in process_kinds.PROCESSES else catalogue.check)(program)
    except ConfigError as error:
        key = error.where.rpartition(".")[2]
        field = re.sub(r"\[.*", "", key)
        raise (spot / spelled(field)).wrong(error.what, error.hint) from None
    return program


def ranks_of(topology: Topology, spot: Spot, written: int | str | list[str]) -> tuple[int, ...]:
    """The NICs of the ranks, by number, in order. Raises ConfigError."""
    if isinstance(written, int):
        if written > topology.nics:
            raise spot.wrong(f"{written} ranks", f"the fabric has {topology.nics} NICs")
        return tuple(range(written))
    words = [written] if isinstance(written, str) else written
    found: dict[int, None] = {}
    for place, word in enumerate(words):
        here = spot if isinstance(written, str) else spot / place
        for number in _nics(topology, here, word):
            if number in found and not _is_glob(word):
                raise here.wrong(f"{shown(word)} is a rank already", "a NIC has one rank in a workload")
            found.setdefault(number)
    if not 1 <= len(found) <= RANKS_MAX:
        raise spot.wrong(f"{len(found)} ranks", f"1 to {RANKS_MAX}")
    return tuple(found)


def _is_glob(word: str) -> bool:
    return word == "all" or any(sign in word for sign in "*?[")


def _nics(topology: Topology, spot: Spot, word: str) -> list[int]:
    if word == "all":
        return list(range(topology.nics))
    if _is_glob(word):
        found = [number for number, name in enumerate(topology.nic_names()) if fnmatchcase(name, word)]
        if not found:
            raise spot.wrong(f"{shown(word)} is the name of no NIC", f"they are h000 to {nic_name(topology.nics - 1)}")
        return found
    try:
        return [topology.nic_index(word)]
    except ConfigError as error:
        raise spot.about(error) from None


# Traces.


def traces_read(spot: Spot, entry: dict[str, Any]) -> dict[str, Any]:
    """An entry as plain data; if it names a trace file, the messages in the file replace the name."""
    kind = KINDS_OF_WORK.get(str(entry.get("kind")))
    if kind is None:
        return entry
    found = dict(entry)
    for name, row in kind.figures.items():
        key = spelled(name)
        if isinstance(row, TraceFigure) and isinstance(entry.get(key), str):
            found[key] = _trace_file(spot / key, entry[key])
    return found


def _trace_file(spot: Spot, name: str) -> list[dict[str, Any]]:
    """The messages of a CSV file beside the scenario, as the scenario would have them."""
    path = str(Path(spot.document.path).parent / name)
    try:
        text = text_of(path, "a trace of messages")
    except ConfigError as error:
        raise spot.about(error) from None
    rows = csv.DictReader(text.splitlines(), restkey="", strict=True)
    try:
        strange = [heading for heading in rows.fieldnames or [""] if heading not in _HEADINGS]
        if strange:
            raise ConfigError(f"{path}:1", f"no heading is called {shown(strange[0])}", ", ".join(_HEADINGS))
        messages = []
        for row in rows:
            messages.append(_row(f"{path}:{rows.line_num}", row))
            if len(messages) > TRACE_MESSAGES_MAX:
                raise ConfigError(path, f"holds more than {TRACE_MESSAGES_MAX} messages")
    except csv.Error as error:
        raise ConfigError(f"{path}:{rows.line_num}", f"is no CSV: {error}") from None
    return messages


def _row(where: str, row: dict[str, Any]) -> dict[str, Any]:
    """One line of the file, with errors that name the line."""
    if "" in row or None in row.values():
        raise ConfigError(where, f"has {'more' if '' in row else 'fewer'} fields than headings")
    plain = {key: int(text) if text.isdecimal() and len(text) < 16 else text for key, text in row.items()}
    decode(Spot(Document(where)), plain, Message)
    return plain


def _message(site: Site, spot: Spot, ranks: tuple[int, ...], message: Message) -> list[int]:
    size = amount("bytes", message.size)
    sender = _rank(site.topology, spot / "from", ranks, message.sender)
    receiver = _rank(site.topology, spot / "to", ranks, message.receiver)
    return [sender, receiver, size, site.scale.length(message.at)]


def _rank(topology: Topology, spot: Spot, ranks: tuple[int, ...], written: int | str) -> int:
    """A rank by its number, or by the name of its NIC."""
    if isinstance(written, int):
        if written >= len(ranks):
            raise spot.wrong(f"there is no rank {written}", f"0 to {len(ranks) - 1}")
        return written
    try:
        nic = topology.nic_index(written)
    except ConfigError as error:
        raise spot.about(error) from None
    if nic not in ranks:
        raise spot.wrong(f"{shown(written)} has no rank in this workload")
    return ranks.index(nic)
