"""`mrcfabric packet`: look at packets. Here `decode`; other modules add their own commands to `packet_app`.

Owns the command line only: `mrcfabric.wire.describe` describes packets, `mrcfabric.wire.pcapng` reads captures.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mrcfabric.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from mrcfabric.wire.description import Description
    from mrcfabric.wire.pcapng import Captured

    Look = Callable[..., Description]

# The longest IPv6 packet: header and a 16-bit length.
PACKET_BYTES_MAX = 40 + 0xFFFF
EXIT_MALFORMED = 1

packet_app = typer.Typer(help="Look at packets.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add `packet` to the command tree."""
    app.add_typer(packet_app, name="packet")


@packet_app.command()
def decode(
    source: Annotated[
        str, typer.Argument(metavar="HEX|FILE.pcapng", help="A packet from its first header on, or a capture.")
    ],
    topology: Annotated[
        Path | None, typer.Option("--topology", help="The fabric it is from, where its `wire` or `dscp` differ.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON list, one element per packet.")] = False,
    selective: Annotated[
        bool, typer.Option("--selective", help="RoCE packets are of NICs with `rc_recovery: selective`.")
    ] = False,
) -> None:
    """Print packets layer by layer, field by field.

    Exit code 1 when the packet given as HEX is malformed.
    """
    path = Path(source)
    is_file = _exists(path)
    records = _from_file(path) if is_file else _from_hex(source)
    look = _look(topology, selective)
    good = _print_json(records, look) if as_json else _print_text(records, look, is_file)
    if not good and not is_file:
        raise typer.Exit(EXIT_MALFORMED)


def _look(topology: Path | None, selective: bool) -> "Look":
    """Makes the function that describes packets, by the wire settings of a fabric or the defaults.

    Raises ConfigError.
    """
    from functools import partial

    from mrcfabric.topology_file import read
    from mrcfabric.wire.describe import describe
    from mrcfabric.wire_settings import code_points, wire_options

    if topology is None:
        return partial(describe, selective=selective)
    fabric = read(topology)
    try:
        dscp, options = code_points(fabric.topology), wire_options(fabric.topology)
        return partial(describe, dscp=dscp, options=options, selective=selective)
    except ConfigError as error:
        raise fabric.locate(error) from None


def _print_text(records: "Iterator[Captured]", look: "Look", numbered: bool) -> bool:
    """Print every packet; returns whether all were good."""
    good = True
    for record in records:
        number = f"Packet {record.number}, " if numbered else ""
        if record.skipped:
            typer.echo(f"{number}{record.skipped}")
            continue
        description = look(record.packet, left_out=record.cut_bytes, infiniband=record.infiniband)
        good = good and description.reason is None
        typer.echo(number + description.as_text())
    return good


def _print_json(records: "Iterator[Captured]", look: "Look") -> bool:
    """Print one JSON list, element by element: a capture may be long."""
    import json

    good = True
    before = "[\n"
    for record in records:
        element: dict[str, Any] = {"number": record.number}
        if record.skipped:
            element["skipped"] = record.skipped
        else:
            description = look(record.packet, left_out=record.cut_bytes, infiniband=record.infiniband)
            good = good and description.reason is None
            element |= description.as_json()
        typer.echo(before + json.dumps(element, indent=2), nl=False)
        before = ",\n"
    typer.echo("[]" if before == "[\n" else "\n]")
    return good


def _exists(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        # The text is too long for a file name: take it as hexadecimal digits.
        return False


def _from_file(path: Path) -> "Iterator[Captured]":
    from mrcfabric.wire.pcapng import captured

    try:
        with path.open("rb") as stream:
            yield from captured(stream, str(path))
    except OSError as error:
        raise ConfigError(str(path), error.strerror or str(error)) from error


def _from_hex(text: str) -> "Iterator[Captured]":
    from mrcfabric.wire.pcapng import Captured

    digits = "".join(text.replace(":", " ").split()).removeprefix("0x").removeprefix("0X")
    try:
        packet = bytes.fromhex(digits)
    except ValueError as error:
        if Path(text).suffix or "/" in text:
            what = "is no regular file" if os.path.exists(text) else "no such file"
            raise ConfigError(text, what) from error
        raise ConfigError("packet", _what_is_wrong(digits), "digits 0-9 and a-f, or the name of a file") from error
    if not 0 < len(packet) <= PACKET_BYTES_MAX:
        raise ConfigError("packet", f"{len(packet)} bytes are no packet", f"1 to {PACKET_BYTES_MAX}")
    yield Captured(1, packet, 0)


def _what_is_wrong(digits: str) -> str:
    for position, digit in enumerate(digits):
        if digit not in "0123456789abcdefABCDEF":
            return f"{digit!r} at position {position + 1} is no hexadecimal digit"
    return f"{len(digits)} hexadecimal digits are half a byte too many"
