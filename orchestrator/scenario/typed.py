"""Workloads as typed on a command line: the words of a scenario's `workload` entry, one flag each.

Owns which flag an error points at. `model` has the keys of an entry; `workloads` turns it into a program. A command
line is about a running fabric, so `ms` and `s` are seconds of fabric time.
"""

from collections.abc import Sequence

from mrcfabric.errors import ConfigError
from mrcfabric.naming import shown
from mrcfabric.nearest import nearest_hint
from mrcfabric.topology import Topology
from mrcfabric.units import NS_PER_S
from nicd.programs.catalogue import PROGRAMS
from nicd.programs.program import Program
from orchestrator.scenario.method import Site
from orchestrator.scenario.model import WORKLOADS
from orchestrator.scenario.workloads import program_of, traces_read
from orchestrator.yamlfile.decode import by_kind
from orchestrator.yamlfile.document import Document, Spot, override
from orchestrator.yamlfile.spelling import LENGTH_NS_MAX, Scale, spelled

_NAME = "typed"
_ELSEWHERE = {"name": "--id", "kind": "the first word", "ranks": "NICs by name behind the kind", "begin": "it is soon",
              "for": "--for"}  # fmt: skip
"""Keys of an entry that are no figures, and what to type instead."""


def workload(topology: Topology, kind: str, ranks: Sequence[str], settings: Sequence[str]) -> Program:
    """The program of a kind with `key=value` settings on NICs by name or glob, a number of them, or all (none named).

    Its name, number and begin are placeholders. Raises ConfigError that names the flag.
    """
    if kind not in PROGRAMS:
        raise ConfigError(shown(kind), "no such kind of work", nearest_hint(kind, PROGRAMS))
    document = Document("command line", {"name": _NAME, "kind": kind, "ranks": _ranks(ranks)})
    document.places[()] = kind
    document.places["ranks",] = "NICs"
    known = [spelled(figure) for figure in PROGRAMS[kind].figures]
    for setting in settings:
        key = setting.partition("=")[0]
        if key in _ELSEWHERE:
            raise ConfigError(f"--set {shown(setting)}", "is said otherwise", _ELSEWHERE[key])
        if key not in known:
            raise ConfigError(f"--set {shown(setting)}", f"no figure of a {kind}", nearest_hint(key, known))
        override(document, setting)
    entry = traces_read(Spot(document), document.root)
    site = Site(topology, Scale(topology.base_rtt_ns(), NS_PER_S), topology.seed, LENGTH_NS_MAX, 0)
    return program_of(site, Spot(document), by_kind(Spot(document), entry, "kind", WORKLOADS, "workload"), 0)


def _ranks(words: Sequence[str]) -> int | str | list[str]:
    if not words:
        return "all"
    if len(words) == 1 and words[0].isascii() and words[0].isdecimal():
        return int(words[0])
    return list(words)
