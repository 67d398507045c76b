"""`mrcfabric packet walk` as typed."""

import json

import pytest
from typer.testing import CliRunner

from mrcfabric.errors import ConfigError
from orchestrator.cli.main import build_app


def run(*words: str) -> str:
    return CliRunner().invoke(build_app(), ("packet", "walk", *words), catch_exceptions=False).stdout


def test_text_and_json_tell_the_same() -> None:
    words = ("--from", "h000", "--to", "h005", "--ev", "0x1234")
    text = run(*words)
    walked = json.loads(run(*words, "--json"))
    assert walked["outcome"] == "delivered"
    for hop in walked["hops"]:
        assert hop["node"] in text
        assert hop["da_out"] in text


def test_mistakes() -> None:
    with pytest.raises(ConfigError, match="entropy"):
        run("--from", "h000", "--to", "h005", "--ev", "x")
    with pytest.raises(ConfigError, match=r"--set switch\.trim"):
        run("--from", "h000", "--to", "h005", "--set", "switch.trim=maybe")
