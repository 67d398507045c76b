"""Decoders of everything that is no packet: `link`, `control`, `verbs`, `session`, `topology`.

The bytes come from other processes and from people: a broken one is counted, refused or a `ConfigError`, never an
exception of another kind, and nothing that an application does outlives it.
"""

import fcntl
import os
import socket
from functools import cache
from typing import Any

from fuzz.script import Script
from fuzz.stage import VICTIM, config_of_nic, packets_of_each_kind
from mrcfabric import topology_file
from mrcfabric.clock import ClockPage
from mrcfabric.control_message import MAC_BYTES, PROTOCOL_VERSION, request_of, seal, sealed, unseal
from mrcfabric.errors import ConfigError, RefusedError
from mrcfabric.link_port import Fidelity, LinkEnd, LinkPort
from mrcfabric.node import Input, Rank
from mrcfabric.udp import TRAIN_SEGMENTS_MAX, Endpoint
from mrcfabric.wire.link import CONTROL, ControlFrame, link_frame, link_stamp
from mrcfabric.wire.pfc import encode
from nicd.core.nic import Nic
from nicd.daemon import NicDaemon
from nicd.verbs_client import Client, VerbsLimits
from nicd.verbs_codec import MESSAGE_BYTES_MAX, Session, VerbsError, pack, unpack
from nicd.verbs_requests import VerbsRequests
from switchd.daemon import SwitchDaemon

_TAG = 0xC0FFEE
_SECRET = bytes(32)
_MEMORY_BYTES = 1 << 16
_VERBS = ("open", "reg_mr", "dereg_mr", "create_qp", "connect", "start", "destroy_qp", "post", "nothing")
_KEYS = ("version", "length", "va", "region_id", "qpn", "psn", "peer", "nic_index", "peer_qpn", "peer_psn", "r_key")
_NUMBERS = (0, 1, 2, 3, 16, 17, 1 << 16, (1 << 24) - 1, 1 << 24, (1 << 32) - 1, (1 << 64) - 1, -1)


@cache
def _port() -> LinkPort:
    page = ClockPage.create([[(1, 0)], [(0, 0)]])
    end = LinkEnd(0, ("127.0.0.1", 0), ("127.0.0.1", 9), 1, 0, 1_000, tag=_TAG, peer_tag=_TAG)
    return LinkPort(end, Endpoint(end.local, end.peer), page, 0, 0, 0, Fidelity(), shared=False)


def _counted(fidelity: Fidelity) -> int:
    return (
        fidelity.frames_in
        + fidelity.bad_frames
        + fidelity.old_frames
        + fidelity.refused_frames
        + fidelity.unknown_flags
    )


def link(data: bytes) -> None:
    """A train as the kernel hands it over."""
    port = _port()
    before = _counted(port.fidelity)
    train = bytearray(data)
    held: list[Input] = []
    port.take_train(train, len(train), held)
    assert 1 <= _counted(port.fidelity) - before <= TRAIN_SEGMENTS_MAX + 1, "what is no frame counts, too"
    assert len(held) <= TRAIN_SEGMENTS_MAX + 1
    assert sum(len(entry[4]) for entry in held) <= len(train)
    assert all(isinstance(entry[4], ControlFrame | bytearray) for entry in held)


def link_seeds() -> list[bytes]:
    """Trains of one and of three frames, one of another fabric, and frames that are no packets."""
    packet = bytes(packets_of_each_kind()[0])
    one, two, three = (link_frame(5, number, link_stamp(0, 0, _TAG), packet) for number in (1, 2, 3))
    foreign = link_frame(5, 1, link_stamp(0, 0, _TAG + 1), b"packet")
    pause = link_frame(5, 1, link_stamp(0, CONTROL, _TAG), bytes(encode(bytes(6), {3: 65_535})))
    odd = link_frame(5, 2, link_stamp(0, 2, _TAG), bytes(64))
    return [one, one + two + three, one + two + three[:-9], foreign, b"", one[:24], pause + odd]


def control(data: bytes) -> None:
    """A datagram of the control channel: as it is, and as the body of a message with a good MAC."""
    assert isinstance(unseal(data, _SECRET), str), "nobody guesses a MAC"
    message = unseal(sealed(data, _SECRET), _SECRET)
    if isinstance(message, str):
        return
    request = request_of(message)
    if request is None:
        return
    ident, op, args, page = request
    assert page >= 0
    assert len(ident) == 2
    for table in (NicDaemon.commands, SwitchDaemon.commands):
        try:
            command = table.build(op, args, 7)
        except (RefusedError, ConfigError) as error:
            assert len(str(error)) < 2_000, "a refusal is a line, whatever was asked"
        else:
            assert command.token == 7


def control_seeds() -> list[bytes]:
    """Requests of every command, with and without arguments."""
    calls: list[tuple[str, dict[str, Any]]] = [(name, {}) for name in NicDaemon.commands.names]
    calls += [
        ("set_impairment", {"port": 1, "impairment": {"up": False, "loss_ppm": 7}}),
        ("set_carrier", {"port": 0, "up": True}),
        (
            "post_write",
            {"qpn": 3, "wr_id": 1, "local_region": 1, "local_va": 0, "length": 9, "remote_va": 0, "r_key": 1},
        ),
        ("counters", {}),
    ]
    frame = {"v": PROTOCOL_VERSION, "fabric": "", "epoch": 0, "id": [1, 2], "page": 0}
    return [seal({**frame, "op": op, "args": args}, _SECRET)[MAC_BYTES:] for op, args in calls]


class _Host:
    """A NIC core behind the tables of its applications, and one application that says whatever the bytes say."""

    def __init__(self) -> None:
        self.nic = Nic(config_of_nic(VICTIM))
        self._commands: list[Any] = []
        self.requests = VerbsRequests(self._commands.append, lambda client: None, VICTIM, 0, VerbsLimits(qps_max=4))
        self.client = Client(_socket(), VerbsLimits(qps_max=4))

    def run(self) -> None:
        """Let the core carry out what was asked, and the tables hear of it."""
        while self._commands:
            at_ns = self.nic.now_ns + 1_000
            inputs = [Input(at_ns, Rank.COMMAND, 0, number, one) for number, one in enumerate(self._commands)]
            self._commands.clear()
            self.nic.advance(inputs, at_ns)
            self.requests.deliver(self.nic.drain_events())


@cache
def _socket() -> socket.socket:
    return socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def verbs(data: bytes) -> None:
    """An application's conversation with its NIC, message by message; then the application dies."""
    script = Script(data)
    host = _Host()
    for _ in range(16):
        if not script.left:
            break
        try:
            number, op, args = _request(script)
            host.requests.message(host.client, number, op, args, _descriptors(script, op))
        except VerbsError:
            break
        host.run()
    host.requests.abandon(host.client)
    host.run()
    assert host.nic.qp_table() == [], "no QP outlives its application"
    assert not host.client.regions
    for answer in host.client.unsent:
        assert len(answer) <= MESSAGE_BYTES_MAX
        unpack(answer)


def _request(script: Script) -> list[Any]:
    """One message: bytes as they come, or a call with arguments."""
    kind = script.number()
    if kind & 1:
        return unpack(script.take(script.number()))
    if kind & 2:
        works = [[_value(script) for _ in range(8)] for _ in range(script.below(4))]
        return unpack(pack((0, "post", works)))
    op = script.one_of(_VERBS)
    args = {script.one_of(_KEYS): _value(script) for _ in range(script.below(8))}
    if op == "open":
        args["version"] = 1
    return unpack(pack((1 + script.number(), op, args)))


def _value(script: Script) -> Any:
    choice = script.number()
    if choice < len(_NUMBERS):
        return _NUMBERS[choice]
    if choice < 32:
        return ("", "x" * choice, b"\0", None, True, 1.5, [1, 2, 3], {"qpn": 1})[choice % 8]
    return script.number(choice % 4)


def _descriptors(script: Script, op: Any) -> list[int]:
    return [_memory()] if op == "reg_mr" and not script.number() & 1 else []


@cache
def _memory() -> int:
    fd = os.memfd_create("fuzz", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    os.ftruncate(fd, _MEMORY_BYTES)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
    return fd


def verbs_seeds() -> list[bytes]:
    """Conversations that open, register memory, make a QP and post; and raw messages."""
    opening = bytes([0, 0, 0, 1])
    found = [opening, b""]
    found += [opening + bytes([0, op, 4, 1, 5, 2, 1, 4, 3, 6, 2, 1, 0, 0]) * 2 for op in range(len(_VERBS))]
    raw = pack((1, "open", {"version": 1}))
    found += [bytes([1, len(raw)]) + raw, opening + bytes([2, 2] + [3] * 16)]
    return found


def session(data: bytes) -> None:
    """What an application makes of a message of its NIC: it is taken, or the conversation is over."""
    found = Session()
    number, _ = found.request("create_qp")
    for piece in (data, data[: len(data) // 2]):
        try:
            found.receive(piece)
        except VerbsError:
            continue
        if found.answered(number):
            try:
                found.result_of(number)
            except VerbsError:
                break
            break
    assert len(found.cqes) <= len(data)


def session_seeds() -> list[bytes]:
    """One of each message that a NIC sends."""
    cqe = (17, 1, "ok", "write", 100, None, 5, 4)
    messages: list[Any] = [(1, None, {"qpn": 17}), (1, "no room", None), (0, "cqe", [cqe, cqe]),
                           (0, "qp_error", (17, "why")), (0, "bye", "done")]  # fmt: skip
    return [b"", *(pack(message) for message in messages)]


def topology(data: bytes) -> None:
    """A topology file, and the same text as a setting on a command line: a fabric, or one line of complaint."""
    fd = os.memfd_create("fuzz")
    try:
        os.write(fd, data)
        found = topology_file.load(f"/proc/self/fd/{fd}")
    except ConfigError as error:
        check_line(error)
    else:
        assert found.nodes == found.nics + found.switches
    finally:
        os.close(fd)
    try:
        topology_file.load(None, [data.decode("utf-8", "surrogateescape")])
    except ConfigError as error:
        check_line(error)


def check_line(error: ConfigError) -> None:
    """That a complaint is fit for a terminal."""
    text = str(error)
    assert text.isprintable(), "a complaint is one line that a terminal can show"
    assert len(text) < 2_000


def topology_seeds() -> list[bytes]:
    """Files and flags that mean something."""
    return [
        b"name: small\nplanes: 4\nrate_bps: 100G\nlink_delay_ns: 1us\nswitch: {ecn_min: 0.2}\n",
        b"nic:\n  rto_ns: 200us\n  max_wimm: 32\nusid_block: fcbb:bb00\ndilation: auto\n",
        b"planes=4", b"nic.rto_ns=200us", b"rate_bps=1e3", b"dilation: .inf\n", b"&a [*a]\n", b"{a: &x 1, b: *x}\n",
    ]  # fmt: skip
