"""The table of commands is complete, and a command costs what it needs alone."""

import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import typer

from orchestrator.cli import commands


def test_every_command_is_in_the_table_under_the_module_that_registers_it() -> None:
    registered = {}
    for module in (info.name for info in pkgutil.iter_modules(commands.__path__)):
        app = typer.Typer()
        imported = importlib.import_module(f"{commands.__name__}.{module}")
        if hasattr(imported, "register"):
            imported.register(app)
            names = [entry.name for entry in (*app.registered_commands, *app.registered_groups)]
            registered.update(dict.fromkeys(names, module))
    assert {name: modules[0] for name, modules in commands.MODULES.items()} == registered


def test_every_module_of_commands_belongs_to_one() -> None:
    named = {module for modules in commands.MODULES.values() for module in modules}
    assert named == {info.name for info in pkgutil.iter_modules(commands.__path__)}


def test_a_command_imports_no_module_of_another(tmp_path: Path) -> None:
    asked = "import sys; from orchestrator.cli.__main__ import main; main(); print(*sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", asked, "events", "--help"], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    inside = f"{commands.__name__}."
    words = done.stdout.splitlines()[-1].split()
    assert [word.removeprefix(inside) for word in words if word.startswith(inside)] == ["look"]
