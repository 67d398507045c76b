"""The metrics of a NIC on InfiniBand: its VLs, waits for credit, paths that migrate, its subnet managers.

Owns the definitions; `mrcfabric.credit_egress` and `nicd.core.subnet` count. A NIC elsewhere has none of these series.
"""

from collections.abc import Iterator

from mrcfabric.metrics import NS, Counters, Definition, Reader, Sample
from mrcfabric.wire.lrh import BLOCK_BYTES


def _per_vl(name: str, scale: float = 1) -> Reader:
    """A number of each VL of each port, where it has it; the port is the plane."""

    def read(counters: Counters) -> Iterator[Sample]:
        for plane, port in counters["core"]["ports"].items():
            for vl, found in port.get("vls", {}).items():
                if name in found:
                    yield str(plane), (str(vl),), found[name] * scale

    return read


def _rc(name: str) -> Reader:
    """A number of the RC transport that only InfiniBand has."""

    def read(counters: Counters) -> Iterator[Sample]:
        found = counters["core"].get("rc", {})
        if name in found:
            yield None, (), found[name]

    return read


def _manager(name: str) -> Reader:
    """A number of each subnet manager here; the port by which it reaches its subnet is the plane."""

    def read(counters: Counters) -> Iterator[Sample]:
        for plane, found in counters["core"].get("subnet", {}).get("managers", {}).items():
            yield str(plane), (), found[name]

    return read


def _traps(counters: Counters) -> Iterator[Sample]:
    if "subnet" in counters["core"]:
        yield None, (), counters["core"]["subnet"]["traps"]


_VL = ("vl",)

CREDIT_DEFINITIONS = (
    Definition("nic_vl_sent_bytes", "counter", "bytes", "Bytes that left on the VL, without framing.",
               "On which VL does this NIC send?", _per_vl("bytes"), _VL, per_plane=True),
    Definition("nic_vl_credit_bytes", "gauge", "bytes", "What may be sent now by the credit there is.",
               "Has the NIC used up its credit?", _per_vl("credit", BLOCK_BYTES), _VL, per_plane=True),
    Definition("nic_vl_credit_stalls", "counter", "times", "How often the next packet came to wait for credit.",
               "Is this NIC held back by its switch?", _per_vl("stalls"), _VL, per_plane=True),
    Definition("nic_vl_credit_stalled_seconds", "counter", "seconds",
               "For how long the next packet waited for credit, in fabric time.",
               "How much of its time may it not send?",
               _per_vl("blocked_ns", NS), _VL, per_plane=True),
    Definition("nic_path_migrations", "counter", "times", "QPs that took their second path (APM).",
               "Have first paths failed?", _rc("migrations")),
    Definition("nic_paths_armed", "gauge", "QPs", "QPs that have a second path left.",
               "Who could take another path?", _rc("armed")),
    Definition("nic_subnet_manager_state", "gauge", "state", "1 discovering, 2 standby, 3 master.",
               "Who manages the subnet?", _manager("state"), per_plane=True),
    Definition("nic_subnet_manager_sweeps", "counter", "times", "Heavy sweeps that are over.",
               "Does the manager see changes?", _manager("sweeps"), per_plane=True),
    Definition("nic_subnet_manager_requests", "counter", "packets", "Requests sent, repetitions included.",
               "What does a sweep cost?", _manager("requests"), per_plane=True),
    Definition("nic_subnet_manager_unanswered", "counter", "requests", "Requests given up.",
               "Are there nodes that do not answer?", _manager("unanswered"), per_plane=True),
    Definition("nic_subnet_manager_blocks_written", "counter", "blocks of 64 LIDs", "Blocks of tables written.",
               "Does the manager change routes?", _manager("blocks_written"), per_plane=True),
    Definition("nic_subnet_manager_switches", "gauge", "switches", "Switches that the last sweep found.",
               "Does the manager see the whole subnet?", _manager("switches"), per_plane=True),
    Definition("nic_subnet_manager_nics", "gauge", "NICs", "NICs that it found.", "And all NICs?", _manager("nics"),
               per_plane=True),
    Definition("nic_subnet_traps_heard", "counter", "packets", "Traps of switches that its managers heard.",
               "Do switches tell of changes?", _traps),
)  # fmt: skip
