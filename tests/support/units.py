"""Units of systemd without systemd: what they say, the command that they start, and how they confine it.

`systemd` itself is never started in a test. What a unit takes away from its processes is taken away here by the same
means: system calls and families of addresses by seccomp, memory that is written and executed, and every capability. Its
view of the file system is not.
"""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from tests.checks.source import ROOT
from tests.support.packages import program

UNITS: Final = ROOT / "deploy/systemd"
_CONFINED: Final = Path(__file__).with_name("confined.py")


class Unit:
    """One file, for one instance."""

    def __init__(self, path: Path, instance: str) -> None:
        self._instance = instance
        self._settings: dict[str, list[str]] = {}
        text = re.sub(r"\\\n\s*", "", path.read_text())
        for line in text.splitlines():
            key, equals, value = line.partition("=")
            if equals and not line.startswith("#"):
                self._settings.setdefault(key, []).append(value.replace("%i", instance))

    def all(self, key: str) -> list[str]:
        """Every value of a setting, in order."""
        return self._settings.get(key, [])

    def one(self, key: str) -> str:
        """The only value of a setting."""
        [value] = self.all(key)
        return value

    def command(self, environment: Mapping[str, str], key: str = "ExecStart") -> list[str]:
        """What it starts, with variables as systemd replaces them: `${NAME}` inside a word, `$NAME` by its words."""
        known = {**dict(pair.split("=", 1) for pair in self.all("Environment")), **environment}
        words: list[str] = []
        for word in shlex.split(self.one(key)):
            if re.fullmatch(r"\$\w+", word):
                words += known[word[1:]].split()
            else:
                words.append(re.sub(r"\$\{(\w+)\}", lambda found: known[found[1]], word))
        return words

    def confined(self, argv: Sequence[str]) -> list[str]:
        """The same command, without what the unit takes from it."""
        assert self.one("CapabilityBoundingSet") == ""
        assert self.one("NoNewPrivileges") == self.one("MemoryDenyWriteExecute") == "yes"
        dropped = ("--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all", "--no-new-privs")
        left = {"calls": sorted(self.system_calls()), "families": self.one("RestrictAddressFamilies").split()}
        return [str(program("setpriv")), *dropped, sys.executable, str(_CONFINED), json.dumps(left), *argv]

    def system_calls(self) -> set[str]:
        """Those that it leaves."""
        left: set[str] = set()
        for line in self.all("SystemCallFilter"):
            named = {call for name in line.removeprefix("~").split() for call in _expanded(name)}
            left = left - named if line.startswith("~") else left | named
        return left


@cache
def _groups() -> dict[str, list[str]]:
    """What each name of a group of system calls stands for."""
    done = subprocess.run([program("systemd-analyze"), "syscall-filter"], capture_output=True, text=True, check=True)
    groups: dict[str, list[str]] = {}
    name = ""
    for line in done.stdout.splitlines():
        word = line.strip()
        if line.startswith("@"):
            groups[name := word] = []
        elif word and not word.startswith("#") and name:
            groups[name].append(word)
        elif not word:
            name = ""
    return groups


def _expanded(name: str) -> set[str]:
    if not name.startswith("@"):
        return {name}
    return {call for one in _groups()[name] for call in _expanded(one)}
