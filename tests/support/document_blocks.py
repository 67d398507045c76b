"""What README.md and docs/*.md show to be run: fenced blocks and command lines, and which are marked as not run.

A mark is a comment of HTML before a block: `<!-- not run: why -->` for the whole of it, or
`<!-- not run: "up --web", "demo": why -->` for the commands that begin so; `<!-- until interrupted: "top" -->` names
commands that go on until Ctrl-C. A `$` at the end of what is quoted: the command ends there, too.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import yaml

ROOT: Final = Path(__file__).parents[2]
GENERATED: Final = ("COMPARISON.md", "METRICS.md", "PAPER.md", "SPEC_MAP.md")
"""Written by code that has tests of its own, by their commands."""
DOCUMENTS: Final = (
    ROOT / "README.md", *(path for path in sorted((ROOT / "docs").glob("*.md")) if path.name not in GENERATED)
)  # fmt: skip
TOOLS: Final = ("mrcfabric", "chaos", "python")
"""What the command lines begin with that are tried; `make` is what tries them."""

_FENCE = re.compile(r"^( *)```([a-z]*)$")
_MARK = re.compile(r"<!-- (not run|until interrupted): (.*?) -->", re.DOTALL)
_QUOTED = re.compile(r'"([^"]+)"')
_COMMAND = re.compile(rf"^(?: {{4}}|\$ )?((?:{'|'.join(TOOLS)}) .*?)(?:\s+#.*)?$")


class Block(NamedTuple):
    """One block."""

    document: Path
    line: int
    language: str
    """Of a fence; "" for indented lines."""
    text: str
    marks: tuple[tuple[str, str], ...]
    """(`not run` or `until interrupted`, what the mark says)"""

    @property
    def name(self) -> str:
        return f"{self.document.relative_to(ROOT)}:{self.line}"

    def why_not(self, command: str = "") -> str:
        """Why it, or a command in it, is not run; "" when it is."""
        for kind, said in self.marks:
            if kind == "not run":
                prefixes = _QUOTED.findall(said)
                if not prefixes or any(_begins(command, prefix) for prefix in prefixes):
                    return said.rpartition('":')[2].strip()
        return ""

    def endless(self, command: str) -> bool:
        """Whether a command goes on until it is interrupted."""
        return any(
            kind == "until interrupted" and any(_begins(command, prefix) for prefix in _QUOTED.findall(said))
            for kind, said in self.marks
        )

    def idle_marks(self) -> list[str]:
        """What its marks quote and no command of its begins with."""
        quoted = [prefix for _, said in self.marks for prefix in _QUOTED.findall(said)]
        return [one for one in quoted if not any(_begins(command, one) for command in self.commands())]

    def commands(self) -> list[str]:
        """Its command lines."""
        lines = self.text.splitlines() if self.language in ("", "sh") else []
        return [match[1] for line in lines if (match := _COMMAND.match(line))]

    def kind(self) -> str:
        """What it is: commands, scenario, topology, hosts, prometheus, python, json."""
        if self.language in ("", "sh"):
            return "commands"
        if self.language != "yaml":
            return self.language
        keys = set(yaml.safe_load(self.text))
        for key, kind in (("workload", "scenario"), ("method", "scenario"), ("hosts", "hosts"),
                          ("scrape_configs", "prometheus")):  # fmt: skip
            if key in keys:
                return kind
        return "topology"


def _begins(command: str, prefix: str) -> bool:
    rest = command.partition(" ")[2]
    return rest == prefix[:-1] if prefix.endswith("$") else rest.startswith(prefix)


def blocks() -> Iterator[Block]:
    """Every fenced block, and every run of indented lines with a command of ours in it, document by document."""
    for document in DOCUMENTS:
        for block in _of(document):
            if block.language or block.commands():
                yield block


def _of(document: Path) -> Iterator[Block]:
    lines = document.read_text().splitlines()
    number = 0
    marks: list[tuple[str, str]] = []
    while number < len(lines):
        line = lines[number]
        fence = _FENCE.match(line)
        begin = number
        if line.startswith("<!--"):
            while "-->" not in lines[number]:
                number += 1
            text = " ".join(lines[begin : number + 1])
            marks += [(match[1], match[2]) for match in _MARK.finditer(text)]
        elif fence is not None:
            number += 1
            while not lines[number].strip().startswith("```"):
                number += 1
            body = "\n".join(one.removeprefix(fence[1]) for one in lines[begin + 1 : number]) + "\n"
            yield Block(document, begin + 1, fence[2] or "sh", body, tuple(marks))
            marks = []
        elif line.startswith("    "):
            while number + 1 < len(lines) and (
                lines[number + 1].startswith("    ")
                or (not lines[number + 1] and number + 2 < len(lines) and lines[number + 2].startswith("    "))
            ):
                number += 1
            yield Block(document, begin + 1, "", "\n".join(lines[begin : number + 1]) + "\n", tuple(marks))
            marks = []
        elif line:
            marks = []
        number += 1
