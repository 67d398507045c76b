"""The documents say what is: commands exist, files exist, every dependency has its reason."""

import re
import shlex
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import typer

from orchestrator.cli.main import build_app
from tests.checks import source
from tests.checks.source import ROOT, relative

FENCE = re.compile(r"^```[a-z]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"^ {4}(\S.*)$", re.MULTILINE)
INLINE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")
REQUIREMENT = re.compile(r"[A-Za-z0-9_.-]+")


def documents() -> list[Path]:
    return [path for path in source.text_files() if path.suffix == ".md"]


def project() -> dict[str, object]:
    return tomllib.loads(source.text(ROOT / "pyproject.toml"))["project"]  # type: ignore[no-any-return]


def commands(path: Path) -> list[list[str]]:
    """Every shell command of ours that a document shows, in a block or in the line, as words."""
    text = source.text(path)
    lines = [line for block in FENCE.findall(text) for line in block.splitlines()]
    lines += INDENTED.findall(text) + INLINE.findall(text)
    found = []
    for line in lines:
        command = line.strip().removeprefix("$ ").split("  #")[0]
        try:
            words = shlex.split(command, comments=True)
        except ValueError:
            continue
        while words and "=" in words[0]:
            words = words[1:]
        if len(words) > 1:
            found.append(words)
    return found


@cache
def make_targets() -> frozenset[str]:
    return frozenset(re.findall(r"^([a-z][a-z-]*):", source.text(ROOT / "Makefile"), re.MULTILINE))


@cache
def tool() -> Any:
    """The whole command tree, as the library under typer sees it."""
    return typer.main.get_command(build_app())


def complaint(words: list[str]) -> str | None:
    """Why a shown command of the tool would not be understood, if so. Options are checked on the last command."""
    command = tool()
    rest = words[1:]
    while rest and hasattr(command, "commands") and not rest[0].startswith("-"):
        if rest[0] not in command.commands:
            return f"no such command: {rest[0]}"
        command, rest = command.commands[rest[0]], rest[1:]
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    unknown = [word for word in rest if word.startswith("--") and word.split("=")[0] not in known | {"--help"}]
    return f"no such option: {unknown[0]}" if unknown else None


def test_make_targets_in_documents_exist() -> None:
    wrong = [
        f"{relative(path)}: {' '.join(words)}"
        for path in documents()
        for words in commands(path)
        if words[0] == "make" and not {word for word in words[1:] if "=" not in word} <= make_targets()
    ]
    assert not wrong


def test_commands_in_documents_exist() -> None:
    wrong = [
        f"{relative(path)}: {' '.join(words)}: {why}"
        for path in documents()
        for words in commands(path)
        if words[0] == "mrcfabric" and words[1].islower() and (why := complaint(words))
    ]
    assert not wrong


def test_links_between_documents_lead_somewhere() -> None:
    broken = [
        f"{relative(path)}: {target}"
        for path in documents()
        for target in LINK.findall(source.text(path))
        if not (path.parent / target).exists()
    ]
    assert not broken


def test_make_phony_lists_every_target() -> None:
    phony = re.search(r"^\.PHONY:(.*)$", source.text(ROOT / "Makefile"), re.MULTILINE)
    assert phony is not None
    assert set(phony.group(1).split()) == make_targets()


def test_every_dependency_has_its_reason_and_licence() -> None:
    described = {
        row[0].strip(): row[1:]
        for line in source.text(ROOT / "docs/DEPENDENCIES.md").splitlines()
        if line.startswith("| ") and len(row := line.strip("| ").split(" | ")) == 4
    }
    declared = project()
    optional = declared["optional-dependencies"]
    assert isinstance(optional, dict)
    wanted = [*declared["dependencies"], *(name for extra in optional.values() for name in extra)]  # type: ignore[misc]
    listed = {match.group() for requirement in wanted if (match := REQUIREMENT.match(requirement))}
    assert set(described) - {"Package"} - {"---"} == listed
    assert all(cell.strip() for row in described.values() for cell in row)


def test_installed_commands_are_ours() -> None:
    scripts = project()["scripts"]
    assert isinstance(scripts, dict)
    for target in scripts.values():
        module = target.split(":")[0].replace(".", "/")
        assert (ROOT / f"{module}.py").is_file(), target


def test_the_scenario_of_the_commands_is_one_that_is_shipped() -> None:
    shown = next(
        block for block in FENCE.findall(source.text(ROOT / "docs/COMMANDS.md")) if block.startswith("name: two-bad")
    )
    assert shown == source.text(ROOT / "examples" / "two-bad-links.yaml")
