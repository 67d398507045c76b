"""`mrcfabric packet decode`, through the command tree."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from mrcfabric.errors import ConfigError
from mrcfabric.naming import nic_address, port_mac
from mrcfabric.wire.pfc import encode
from mrcfabric.wire.roce import RcControlTemplate
from orchestrator.cli.main import build_app
from tests.support.captures import enhanced, interface, section
from tests.vectors import wire as golden


def decode(*arguments: str) -> Result:
    return CliRunner().invoke(build_app(), ["packet", "decode", *arguments])


def test_digits_in_any_common_form() -> None:
    plain = decode(golden.SACK.hex())
    assert plain.exit_code == 0
    assert "Reliability SACK to QP 0xabc" in plain.output
    for form in ("0x" + golden.SACK.hex(), golden.SACK.hex(":"), golden.SACK.hex(" ").upper()):
        assert decode(form).output == plain.output


def test_a_malformed_packet_is_shown_as_far_as_it_goes() -> None:
    result = decode(golden.SACK[:90].hex())
    assert result.exit_code == 1
    assert "UDP  at 80" in result.output
    assert result.output.endswith("Malformed: truncated\n")


def test_a_capture_packet_by_packet(tmp_path: Path) -> None:
    file = tmp_path / "some.pcapng"
    file.write_bytes(
        section() + interface(101) + enhanced(golden.WRITE) + enhanced(b"\x45") + enhanced(golden.NACK[:99])
    )
    result = decode(str(file))
    assert result.exit_code == 0
    assert "Packet 1, 140 bytes: WRITE Only with Immediate" in result.output
    assert "Packet 2, not IPv6\n" in result.output
    assert "Packet 3, 99 bytes: no MRC packet" in result.output
    listed = json.loads(decode(str(file), "--json").output)
    assert [element["number"] for element in listed] == [1, 2, 3]
    assert [element.get("reason") for element in listed] == [None, None, "truncated"]
    assert listed[1]["skipped"] == "not IPv6"


def test_a_capture_with_a_snap_length_holds_no_malformed_packets(tmp_path: Path) -> None:
    file = tmp_path / "snap.pcapng"
    bodies = [golden.WRITE, golden.SACK, golden.NACK]
    file.write_bytes(
        section()
        + interface(229)
        + b"".join(enhanced(body[:size], original=len(body)) for body in bodies for size in range(1, len(body)))
    )
    for element in json.loads(decode(str(file), "--json").output):
        assert element["reason"] is None
        assert element["cut_by_capture"] > 0
        assert element["size"] in {len(body) for body in bodies}
    assert "The capture left out the last 1 bytes." in decode(str(file)).output


def test_packets_of_roce_and_pauses(tmp_path: Path) -> None:
    template = RcControlTemplate(nic_address(0), nic_address(1), 9, 0xC001, dscp=48, selective=True)
    ack, pause = template.ack(5, 6, cause=7), encode(port_mac("p0-t0-0", 1), {3: 65_535, 4: 0})
    assert decode(ack.hex()).exit_code == 1, "the extension is no part of the standard"
    told = decode(ack.hex(), "--selective")
    assert (told.exit_code, "cause_psn  7" in told.output) == (0, True)
    assert decode(pause.hex()).output.startswith(
        "64 bytes: PFC from 02:40:01:00:00:00: class 3 pauses, class 4 goes on\n"
    )
    file = tmp_path / "pauses.pcapng"
    file.write_bytes(section() + interface(1) + enhanced(pause) + interface(229) + enhanced(ack, 1))
    listed = json.loads(decode(str(file), "--json", "--selective").output)
    assert [element["reason"] for element in listed] == [None, None]
    assert listed[0]["layers"][0]["fields"]["quanta_3"] == 65_535
    assert listed[0]["layers"][0]["fields"]["destination"] == "01:80:c2:00:00:01"


def test_an_empty_capture_is_an_empty_list(tmp_path: Path) -> None:
    file = tmp_path / "none.pcapng"
    file.write_bytes(section())
    assert json.loads(decode(str(file), "--json").output) == []


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("60xy", "'x' at position 3 is no hexadecimal digit"),
        ("600", "3 hexadecimal digits are half a byte too many"),
        ("", "0 bytes are no packet"),
        ("00" * 70000, "70000 bytes are no packet"),
        ("missing.pcapng", "missing.pcapng: no such file"),
        ("/dev/null", "/dev/null: is no regular file"),
        ("/" + "00" * 3000, "no such file"),
    ],
)
def test_bad_input_is_one_clear_error(source: str, words: str) -> None:
    error = decode(source).exception
    assert isinstance(error, ConfigError)
    assert words in str(error)


def test_a_file_that_is_no_capture(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("not a capture")
    error = decode(str(file)).exception
    assert isinstance(error, ConfigError)
    assert "no pcapng file" in str(error)
