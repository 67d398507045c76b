"""Everything that can be asked of a NIC core, and nothing else.

Owns the vocabulary: one slots dataclass per request, carried as the body of an `Input` of rank COMMAND.
Each is answered by exactly one `CommandDone` event with the same `token`, at the instant of the command;
`error` is None or one line of text, `result` what the docstring of the command says. Checking sizes and
types of untrusted arguments is the daemon's business; checking them against the NIC's state is the core's.

What a controller asks of EVs and paths is `commands_paths`.

MRC 1.0 section 3 (verbs); the control part follows the port operations of the controller API.
"""

from dataclasses import dataclass
from typing import TypeAlias

from mrcfabric.impairment import Impairment
from nicd.core.commands_paths import PathCommand


@dataclass(slots=True)
class RegisterMemory:
    """Make `length` bytes reachable at virtual address `va`. Result: `region_id`, `r_key`, `va`, `length`."""

    token: int
    va: int
    length: int
    region_id: int | None = None
    """None: the core chooses the next free one."""
    r_key: int | None = None
    """None: drawn from the NIC's own generator."""
    memory: memoryview | None = None
    """Writable bytes to place into (an application's memfd); None: the core allocates zeroed memory."""


@dataclass(slots=True)
class DeregisterMemory:
    """Forget a region; refused while a posted write still reads from it. Result: `region_id`."""

    token: int
    region_id: int


@dataclass(slots=True)
class CreateQp:
    """Create a QP in state INIT. Result: `qpn`, and what we offer the peer: `mpr`, `max_wimm`, `trim_nack`,
    `dynamic_mpr`, `service_time`."""

    token: int
    qpn: int | None = None
    """None: the next free number; 0, 1 and 2 are reserved."""
    profile: int | None = None
    """The EV profile it is tied to for life, which must be online; None: the built-in one."""
    mpr: int | None = None
    """Our tracking window in units of 128 PSNs, not 0; None: as the NIC's settings and the hints have it."""
    max_wimm: int | None = None
    """How many early with-immediate messages we hold; None: as the NIC's settings have it."""
    trim_nack: bool | None = None
    """Offer NACKs for trimmed packets; None: as the NIC's settings have it, which cannot be exceeded."""
    dynamic_mpr: bool | None = None
    service_time: bool | None = None
    """Offer these options; None: as the NIC's settings have it."""
    qps_per_peer: int = 0
    send_peers: int = 0
    incast: int = 0
    """Hints, 0 when unknown: QPs to the same peer, peers sent to, peers that send to us at once."""


@dataclass(slots=True)
class ConnectQp:
    """Tell a QP in INIT its peer and move it to RTR: from now on it receives. Result: `qpn`, `state`, and the limits
    agreed: `receive_mpr`, `send_mpr`, `receive_wimm`, `send_wimm`, `trim_nack`, `dynamic_mpr`, `service_time`."""

    token: int
    qpn: int
    peer_index: int
    """The peer's NIC number in the topology."""
    peer_qpn: int
    psn_send: int
    """First PSN this end sends, 24 bits."""
    psn_receive: int
    """First PSN the peer sends, 24 bits."""
    peer_mpr: int | None = None
    """The peer's tracking window in units of 128 PSNs; None: the same as our own."""
    peer_max_wimm: int | None = None
    """How many with-immediate messages the peer can hold; None: the same as our own."""
    peer_trim_nack: bool | None = None
    peer_dynamic_mpr: bool | None = None
    peer_service_time: bool | None = None
    """Whether the peer offers these options; None: as we do. What both offer is agreed."""


@dataclass(slots=True)
class ModifyQp:
    """Move a QP to `state`: "rts" from RTR, "error" from any. Result: `qpn`, `state`."""

    token: int
    qpn: int
    state: str
    timeout_exponent: int | None = None
    """With "rts": the RTO is 1.024 us times 2 to this power, at most 24; None: as the NIC's settings have it."""
    retry_linear: int | None = None
    """With "rts": retransmissions of a packet at the plain RTO, at most 7."""
    retry_exponential: int | None = None
    """With "rts": further ones at doubled RTOs, at most 25, which means for ever."""


@dataclass(slots=True)
class DestroyQp:
    """Remove a QP and everything it holds; unfinished work is flushed with completions. Result: `qpn`."""

    token: int
    qpn: int


@dataclass(slots=True)
class PostWrite:
    """Post a WRITE, or with `imm` a WRITE_WITH_IMM. Result: `qpn`, `wr_id`; a `Completion` follows later."""

    token: int
    qpn: int
    wr_id: int
    local_region: int
    """Region to read from."""
    local_va: int
    """Where the message starts in that region, as a virtual address of the region."""
    length: int
    """Bytes, 1 .. 2**32 - 1."""
    remote_va: int
    r_key: int
    """Key of the peer's region."""
    imm: int | None = None
    """32 bits handed to the peer on completion."""


@dataclass(slots=True)
class SetCarrier:
    """The link of a port lost or regained carrier. Result: `port`, `up`."""

    token: int
    port: int
    up: bool


@dataclass(slots=True)
class SetPauseStorm:
    """A broken port asks its switch to pause this NIC's data class, without a reason, until told otherwise. Result:
    `port`, `on`. Without effect in a fabric that is not lossless."""

    token: int
    port: int
    on: bool


@dataclass(slots=True)
class SetReceiveRate:
    """From now on the host takes so many bits per second out of a receive buffer of `buffer_bytes`, and the NIC pauses
    its switches beyond it; 0: as many as come. Result: `rate_bps`. Without effect in a fabric that is not lossless."""

    token: int
    rate_bps: int
    buffer_bytes: int


@dataclass(slots=True)
class StartManager:
    """Run a subnet manager for the subnet behind a port, in place of the one that may run: it sweeps at once.

    Times and counts None: those of opensm. Result: `port`. Only a NIC on InfiniBand can.
    """

    token: int
    port: int
    sweep_ns: int | None = None
    timeout_ns: int | None = None
    retries: int | None = None
    outstanding: int | None = None
    priority: int | None = None
    poll_ns: int | None = None
    polls: int | None = None


@dataclass(slots=True)
class SetManager:
    """The subnet managers of this NIC die (not `on`), or those that it is set to run begin anew. Result: `on`. Without
    effect on a NIC that is set to run none."""

    token: int
    on: bool


@dataclass(slots=True)
class SetManagerPace:
    """From now on the subnet managers of this NIC take so long over each answer and trap that comes, one after another;
    0: no time. Result: `delay_ns`. Without effect on a NIC that runs none."""

    token: int
    delay_ns: int


@dataclass(slots=True)
class StopManager:
    """Run no subnet manager for a port any more. Result: `port`."""

    token: int
    port: int


@dataclass(slots=True)
class SetImpairment:
    """What the transmit direction of a port does to packets from now on. Result: `port`."""

    token: int
    port: int
    impairment: Impairment


@dataclass(slots=True)
class ProbeLinks:
    """Test the links around this NIC by packets to itself. Result: `period_ns`, `rounds`."""

    token: int
    period_ns: int
    """One round per this time; 0: stop."""
    rounds: int | None = None
    """So many rounds; None: until told otherwise."""


@dataclass(slots=True)
class ProbeLoop:
    """Send packets to ourselves round a loop: up through one T1 to another T0 and home through another T1. Each T0-T1
    link is crossed in one direction only. Result: `plane`, `probes`."""

    token: int
    plane: int
    t1_out: int
    t0: int
    t1_home: int
    probes: int
    gap_ns: int
    """Between two probes of this NIC's loops."""


Command: TypeAlias = (
    RegisterMemory
    | DeregisterMemory
    | CreateQp
    | ConnectQp
    | ModifyQp
    | DestroyQp
    | PostWrite
    | SetCarrier
    | SetImpairment
    | SetPauseStorm
    | SetReceiveRate
    | SetManager
    | SetManagerPace
    | StartManager
    | StopManager
    | ProbeLinks
    | ProbeLoop
    | PathCommand
)
