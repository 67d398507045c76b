"""One RC NIC with nothing behind its ports: packets of a peer that a test makes go in, what leaves is taken apart."""

from typing import Any

from mrcfabric.naming import nic_address
from mrcfabric.node import Input, Rank
from mrcfabric.topology import Topology
from mrcfabric.units import NEVER, Buffer
from mrcfabric.wire.roce import RcControlTemplate, RcDataTemplate, rc_peeker, read_rc_aeth, read_selective_aeth
from mrcfabric.wire.roce_layout import CNP, NAK_SEQUENCE, RC_ACK, RC_ACK_SYNDROME, RC_DATA_OPCODES
from nicd.compose import nic_config
from nicd.core.commands import ConnectQp, CreateQp, ModifyQp, PostWrite, RegisterMemory
from nicd.core.nic import Nic

QPN, PEER_QPN = 100, 200
PSN_SEND, PSN_RECEIVE = 0xFFFFFE, 500
R_KEY, VA, SIZE = 7, 0x1000, 1 << 16
MTU = 256
ACK, NAK = RC_ACK_SYNDROME, NAK_SEQUENCE


class LoneNic:
    """NIC h000 with QP 100 connected to QP 200 of h001, in RTS; region 1 (R_Key 7) at VA 0x1000."""

    def __init__(self, planes: int = 1, connect: bool = True, **nic: Any) -> None:
        topology = Topology(
            name="lone", planes=planes, t0_per_plane=1, t1_per_plane=1, nics_per_t0=2, evs_per_qp=8 * planes,
            reserve_evs_per_qp=0, mtu_bytes=MTU, nic={"transport": "rc", **nic},
        )  # fmt: skip
        self.nic = Nic(nic_config(topology, "h000"))
        self.selective = nic.get("rc_recovery") == "selective"
        self._peek = rc_peeker(selective=self.selective)
        self.now = 0
        self.events: list[Any] = []
        self.packets: list[Buffer] = []
        """All that was sent."""
        self._sequence = 0
        ends = nic_address(1), nic_address(0), QPN, 0xC001
        self.data = RcDataTemplate(*ends, dscp=26, selective=self.selective)
        self.control = RcControlTemplate(*ends, dscp=48, selective=self.selective)
        self.do(RegisterMemory(0, VA, SIZE, 1, R_KEY))
        if connect:
            self.do(CreateQp(0, QPN))
            self.do(ConnectQp(0, QPN, 1, PEER_QPN, PSN_SEND, PSN_RECEIVE))
            self.do(ModifyQp(0, QPN, "rts"))

    def _go(self, rank: Rank, body: Any, port: int = 0, wait_ns: int = 1) -> list[Any]:
        self._sequence += 1
        at_ns = self.now + wait_ns
        self.now = at_ns
        out = self.nic.advance([Input(at_ns, int(rank), port, self._sequence, body)], at_ns)
        self.events += self.nic.drain_events()
        return out

    def do(self, command: Any) -> list[tuple[int, ...]]:
        """Carry out a command; what it sent at once, as `sent`."""
        return self.sent(self._go(Rank.COMMAND, command))

    def post(self, length: int, wr_id: int = 1, imm: int | None = None) -> list[tuple[int, ...]]:
        return self.do(PostWrite(0, QPN, wr_id, 1, VA, length, VA, R_KEY, imm))

    def arrive(self, packet: bytearray, port: int = 0, wait_ns: int = 1_000) -> list[tuple[int, ...]]:
        """A packet of the peer comes; what was sent since the last call, as `sent`."""
        return self.sent(self._go(Rank.FRAME, packet, port, wait_ns))

    def wait(self, length_ns: int) -> list[tuple[int, ...]]:
        """Let time pass; what was sent meanwhile."""
        self.now += length_ns
        out = self.nic.advance([], self.now)
        self.events += self.nic.drain_events()
        return self.sent(out)

    def sent(self, out: list[Any]) -> list[tuple[int, ...]]:
        """(opcode, PSN) of data, with whether it asks; (opcode, PSN, syndrome, MSN[, cause]) of acknowledgements."""
        rows: list[tuple[int, ...]] = []
        for entry in out:
            self.packets.append(entry[2])
            reason, _, opcode, qpn, psn, flags, start, *_ = self._peek(entry[2])
            assert reason is None
            assert qpn == PEER_QPN
            if opcode in RC_DATA_OPCODES:
                rows.append((opcode, psn, flags >> 7))
            elif opcode == RC_ACK:
                read = read_selective_aeth if self.selective else read_rc_aeth
                rows.append((opcode, psn, *read(entry[2], start)))
            else:
                assert opcode == CNP
                rows.append((opcode,))
        return rows

    def packet(
        self, opcode: int, psn: int, size: int = MTU, offset: int = 0, length: int = 0, ask: bool = False,
        imm: int | None = None, r_key: int = R_KEY, byte: int = 1,
    ) -> bytearray:  # fmt: skip
        """Data packet number `psn` (0: the first that the NIC expects)."""
        psn24 = (PSN_RECEIVE + psn) & 0xFFFFFF
        return self.data.make(opcode, psn24, bytes([byte]) * size, VA + offset, r_key, length or size, ask, imm)

    def told(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def state(self) -> str:
        return str(self.nic.qp_table()[0]["state"])

    def drops(self) -> dict[str, int]:
        return {reason: count for reason, count in self.nic.counters()["drops"].items() if count}

    def memory(self) -> bytes:
        return self.nic.region_bytes(1)

    @property
    def idle(self) -> bool:
        """Whether nothing more happens by itself."""
        return (self.nic.next_timeout() or NEVER) == NEVER
