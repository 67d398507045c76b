"""`mrcfabric packet`: look at packets. Here `decode`; other modules add their own commands to `packet_app`.

Owns the command line only: what a packet says is `mrcfabric.wire.describe`'s, what a capture holds `mrcfabric.wire.pcapng`'s.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mrcfabric.errors import ConfigError

if TYPE_CHECKING:
    from mrcfabric.wire.pcapng import Captured

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
        str, typer.Argument(metavar="HEX|FILE.pcapng", help="A packet from its outer IPv6 header on, or a capture.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="A JSON list, one element per packet.")] = False,
) -> None:
    """Print packets layer by layer, field by field.

    Exit code 1 when the packet given as HEX is malformed.
    """
    import json

    from mrcfabric.wire.describe import describe

    path = Path(source)
    is_file = _exists(path)
    records = _from_file(path) if is_file else _from_hex(source)
    reason = None
    listed = []
    for record in records:
        if record.skipped:
            listed.append({"number": record.number, "skipped": record.skipped})
            if not as_json:
                typer.echo(f"Packet {record.number}: {record.skipped}")
            continue
        description = describe(record.packet)
        reason = description.reason
        listed.append({"number": record.number, "cut_by_capture": record.cut_bytes, **description.as_json()})
        if not as_json:
            typer.echo((f"Packet {record.number}, " if is_file else "") + description.as_text())
    if as_json:
        typer.echo(json.dumps(listed, indent=2))
    if reason is not None and not is_file:
        raise typer.Exit(EXIT_MALFORMED)


def _exists(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        # Hexadecimal digits make no good file name: too long.
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
            raise ConfigError(text, "no such file") from error
        raise ConfigError(
            "packet", _what_is_wrong(digits), "an even number of digits 0-9 and a-f, or a file"
        ) from error
    if not 0 < len(packet) <= PACKET_BYTES_MAX:
        raise ConfigError("packet", f"{len(packet)} bytes are no packet", f"1 to {PACKET_BYTES_MAX}")
    yield Captured(1, packet, 0)


def _what_is_wrong(digits: str) -> str:
    for position, digit in enumerate(digits):
        if digit not in "0123456789abcdefABCDEF":
            return f"{digit!r} at position {position + 1} is no hexadecimal digit"
    return f"{len(digits)} hexadecimal digits are half a byte too many"
