"""Words that the commands of the studies share: cases and settings, and how they refuse what will not do.

A mistake is one line and exit code 2, as argparse does it, also one that only a fabric notices.
"""

import argparse
from collections.abc import Callable, Iterable
from typing import Any

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from orchestrator.planning.plan import check


def add_cases(parser: argparse.ArgumentParser, cases: Iterable[str]) -> None:
    """Add `--case`, which may be given several times."""
    names = list(cases)
    told = "; ".join(names).replace("%", "%%")
    parser.add_argument("--case", action="append", choices=names, metavar="CASE", help=f"of {told}; all")


def add_settings(parser: argparse.ArgumentParser, kind: str = "nic") -> None:
    """Add `--nic KNOB=VALUE`, or that of another kind of node."""
    parser.add_argument(f"--{kind}", action="append", default=[], type=_setting, metavar="KNOB=VALUE")


def check_all(parser: argparse.ArgumentParser, fabrics: Iterable[Callable[[], Topology]]) -> None:
    """Make these fabrics, and end the command if one cannot be made or cannot run."""
    for fabric in fabrics:
        try:
            check(fabric())
        except ConfigError as error:
            parser.error(str(error))


def _setting(text: str) -> tuple[str, Any]:
    name, sign, value = text.partition("=")
    if not (name and sign and value):
        raise argparse.ArgumentTypeError(f"{text!r} is no KNOB=VALUE")
    if value in ("true", "false"):
        return name, value == "true"
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            continue
    return name, value
