"""`mrcfabric packet walk` as typed."""

import json

import pytest
from typer.testing import CliRunner

from mrcfabric.errors import ConfigError
from orchestrator.cli.main import build_app

RC = ("--set", "nic.transport=rc", "--set", "switch.forwarding=ecmp")


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


def test_a_flow_of_roce_goes_by_hash() -> None:
    words = ("--from", "h000", "--to", "h005", *RC, "--sport", "0xc001", "--port", "3")
    text = run(*words)
    walked = json.loads(run(*words, "--json"))
    assert (walked["sport"], walked["port"], walked["outcome"]) == (0xC001, 3, "delivered")
    for hop in walked["hops"]:
        assert hop["node"] in text
    assert f"0x{walked['hops'][0]['ecmp']['hash']:x} of ports 4, 5, 6, 7" in text
    assert "source port 49152, by port 0" in run("--from", "h000", "--to", "h005", *RC)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--sport", "5"), "carry their path"),
        (("--port", "1"), "carry their path"),
        (("--sport", "5", "--ev", "1"), "one of them"),
        ((*RC, "--sport", "5", "--ev", "1"), "one of them"),
        ((*RC, "--ev", "1"), "no EV names a path"),
        ((*RC, "--sport", "x"), "is no UDP port"),
        ((*RC, "--sport", "65536"), "is no UDP port"),
        ((*RC, "--port", "8"), "has no port 8"),
        ((*RC, "--hop-limit", "0"), "is no hop limit"),
    ],
)
def test_what_names_a_path_depends_on_the_fabric(words: tuple[str, ...], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        run("--from", "h000", "--to", "h005", *words)


def test_mistakes() -> None:
    with pytest.raises(ConfigError, match="entropy"):
        run("--from", "h000", "--to", "h005", "--ev", "x")
    with pytest.raises(ConfigError, match=r"--set switch\.trim"):
        run("--from", "h000", "--to", "h005", "--set", "switch.trim=maybe")
