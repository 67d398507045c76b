"""Command lines of ours that stand in other files: read by our own command line, not carried out."""

from collections.abc import Sequence
from typing import Any

import typer.main
from typer.core import TyperGroup

from orchestrator.cli.main import build_app


def understood(words: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """The command and its parameters by name, of `mrcfabric WORDS`. Raises for what is misspelled."""
    group = typer.main.get_command(build_app())
    assert isinstance(group, TyperGroup)
    name, *rest = words
    return name, group.commands[name].make_context(name, list(rest)).params
