"""`mrcfabric capture`: writes the packets of links of a running fabric into a pcapng file, or live into Wireshark.

Owns arguments and output; `orchestrator.captures` captures. Output goes to standard error, since the packets may go to
standard output.
"""

from typing import TYPE_CHECKING, Annotated

import typer

from mrcfabric.errors import one_line
from orchestrator.cli.flags import NameOption, RunDirOption, duration, ev_number

if TYPE_CHECKING:
    from mrcfabric.packet_filter import PacketFilter
    from orchestrator.captures.capture import Outcome, Request
    from orchestrator.client.agent_fabric import AgentFabric


def register(app: typer.Typer) -> None:
    """Add `capture`."""
    app.command("capture")(capture)


def capture(
    links: Annotated[
        list[str] | None,
        typer.Argument(metavar="[LINK]...", help='Names, globs, tier=, plane=, of=, "a>b" one way; none: all.'),
    ] = None,
    target: Annotated[str, typer.Option("--write", "-w", metavar="FILE", help="The pcapng file; -: a pipe.")] = "-",
    qps: Annotated[
        list[str] | None, typer.Option("--qp", metavar="NIC:QPN", help="To or from this QP only; may be repeated.")
    ] = None,
    evs: Annotated[list[str] | None, typer.Option("--ev", help="With this entropy value only.")] = None,
    kinds: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            help="data, ack, sack, nack, probe, endpoint, trimmed, rtx, cnp, control, smp or link; may be repeated.",
        ),
    ] = None,
    planes: Annotated[list[int] | None, typer.Option("--plane", help="Links of this plane only.")] = None,
    direction: Annotated[str, typer.Option("--direction", help="both, up or down.")] = "both",
    clock: Annotated[str, typer.Option("--clock", help="Of the time stamps: fabric or wall.")] = "fabric",
    snap: Annotated[str, typer.Option("--snap", help="Bytes kept of a packet, as 4KiB; 0: all.")] = "256",
    count: Annotated[int | None, typer.Option("--count", "-c", min=1, help="End after so many packets.")] = None,
    length: Annotated[str | None, typer.Option("--for", help="Fabric time, as 5ms; default: until stopped.")] = None,
    size: Annotated[str, typer.Option("--size", help="End before the file gets larger.")] = "256MiB",
    name: NameOption = None,
    run_dir: RunDirOption = None,
) -> None:
    """Capture the packets of links, both directions, until Ctrl-C."""
    import asyncio

    from mrcfabric.errors import ConfigError
    from mrcfabric.tap import SNAP_BYTES_MAX

    if clock not in ("fabric", "wall"):
        raise ConfigError(f"--clock {clock}", "no such clock", "fabric or wall")
    bounds = {
        "clock": clock,
        "snap_bytes": _bytes("--snap", snap, SNAP_BYTES_MAX) or SNAP_BYTES_MAX,
        "packets_max": count,
        "size_bytes_max": _bytes("--size", size, 1 << 50),
        "for_ns": duration("--for", length),
    }

    async def attached() -> "Outcome":
        from orchestrator.captures.capture import Request
        from orchestrator.captures.wires import links_meant, wires_of
        from orchestrator.client.agent_fabric import AgentFabric

        async with AgentFabric.open(name, run_dir) as fabric:
            meant = links_meant(fabric.topology, links or [], direction, planes or [])
            wanted = await _filter(fabric, qps or [], evs or [], kinds or [])
            request = Request(wires_of(fabric.topology, meant), wanted, **bounds)  # type: ignore[arg-type]
            return await _run(fabric, request, target)

    outcome = asyncio.run(attached())
    _tell(outcome, target)


async def _run(fabric: "AgentFabric", request: "Request", target: str) -> "Outcome":
    """Capture until a bound is reached or a signal comes; either way the file is complete."""
    import asyncio

    from orchestrator.captures.capture import capture
    from orchestrator.captures.sink import Sink
    from orchestrator.process.end_signals import end_signals

    stop = asyncio.Event()
    for number in end_signals():
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    with Sink(target) as sink:
        said = f"capturing {len(request.wires)} directions of links into {one_line(sink.name)}"
        return await capture(fabric, request, sink, stop, lambda: typer.echo(said, err=True))


def _tell(outcome: "Outcome", target: str) -> None:
    where = "" if target == "-" else f" in {one_line(target)}"
    typer.echo(f"{outcome.packets} packets, {outcome.size_bytes} bytes{where}: {outcome.why}", err=True)
    if outcome.lost:
        typer.echo(f"{outcome.lost} packets came faster than they could be read, and are missing", err=True)
    for node in outcome.silent:
        typer.echo(f"{node} did not answer at the end: what it had not told by then is missing", err=True)
    for node in dict.fromkeys(outcome.again):
        typer.echo(f"{node} was down, or was not read for long: what it sent just before is missing", err=True)


async def _filter(fabric: "AgentFabric", qps: list[str], evs: list[str], kinds: list[str]) -> "PacketFilter":
    from mrcfabric.errors import ConfigError
    from mrcfabric.packet_filter import KINDS, PacketFilter

    for kind in kinds:
        if kind not in KINDS:
            raise ConfigError(f"--kind {kind}", "no such kind of packet", "one of " + ", ".join(KINDS))
    ends = [end for qp in qps for end in await _ends(fabric, qp)]
    return PacketFilter(qps=tuple(ends), evs=tuple(ev_number(ev) for ev in evs), kinds=tuple(kinds))


async def _ends(fabric: "AgentFabric", qp: str) -> list[tuple[int, int]]:
    """(NIC, QPN) of a QP and, once it is connected, of its peer. Raises ConfigError."""
    from mrcfabric.errors import ConfigError

    nic, _, text = qp.partition(":")
    index = fabric.topology.nic_index(nic)
    if not text.isdecimal():
        raise ConfigError(f"--qp {qp}", "is no QP", "wanted: NIC:QPN, as h003:17")
    qpn = int(text)
    rows = {row["qpn"]: row for row in await fabric.call(nic, "qp_table")}
    if qpn not in rows:
        there = ", ".join(str(number) for number in sorted(rows)[:8]) or "none"
        raise ConfigError(f"--qp {qp}", "no such QP", f"{nic} has: {there}")
    row = rows[qpn]
    own = [(index, qpn)]
    return [*own, (row["peer_index"], row["peer_qpn"])] if "peer_qpn" in row else own


def _bytes(option: str, text: str, most: int) -> int:
    from mrcfabric.errors import ConfigError
    from mrcfabric.quantity import quantity

    value = quantity(f"{option.strip('-')}_bytes", text)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise ConfigError(option, f"{text!r} will not do", f"bytes up to {most}, as 256 or 4KiB")
    return value
