"""The commands of `mrcfabric` by name: a command's modules are imported when it is asked for.

A command line names one command. To import the modules of all, and to read the parameters of all, takes half as long as
many a command does.
"""

import contextlib
import importlib
from collections import UserDict
from collections.abc import Iterator
from typing import Any

import typer
from typer.core import TyperGroup

from mrcfabric.errors import brief
from orchestrator.cli.commands import MODULES
from orchestrator.cli.interrupts import heed_interrupts

_UsageError: Any = typer.BadParameter.__bases__[0]
"""What typer raises for words that it cannot read, under whatever name it has it."""


def new_app(**attributes: Any) -> typer.Typer:
    """An empty app with the manners of ours: plain text, no traceback of typer's, `-h` beside `--help`."""
    return typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
        **attributes,
    )


class CommandTree(TyperGroup):
    """The outermost group."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = _Commands()

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names, in the order of the help."""
        return list(self.commands)

    def make_context(self, *args: Any, **named: Any) -> Any:
        """Read the words in front of the command."""
        with _brief_mistakes():
            return super().make_context(*args, **named)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that the words name, with its modules; from then on Ctrl-C is the command's."""
        found = super().resolve_command(ctx, args)
        heed_interrupts()
        return found

    def invoke(self, ctx: Any) -> Any:
        """Read the command's own words and run it."""
        with _brief_mistakes():
            return super().invoke(ctx)


@contextlib.contextmanager
def _brief_mistakes() -> Iterator[None]:
    """Repeat no word that typer cannot read at any length."""
    try:
        yield
    except _UsageError as error:
        error.message = brief(error.message)
        raise


class _Commands(UserDict[str, Any]):
    """What typer makes of each command, made when it is read for the first time."""

    def __init__(self) -> None:
        super().__init__()
        self.data = dict.fromkeys(MODULES)

    def __getitem__(self, name: str) -> Any:
        if self.data[name] is None:
            self.data[name] = _made(name)
        return self.data[name]


def _made(name: str) -> Any:
    app = new_app()
    first, *others = (importlib.import_module(f"orchestrator.cli.commands.{module}") for module in MODULES[name])
    del others  # each has added to the group of the first one
    first.register(app)
    made = typer.main.get_command(app)
    # One command alone is no group for typer.
    return made.commands[name] if isinstance(made, TyperGroup) else made
