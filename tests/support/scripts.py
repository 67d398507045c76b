"""Scripted workloads: explicit QP numbers, regions and instants, so that both drivers can be given the same."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from mrcfabric.topology import Topology
from orchestrator.fabric import Fabric
from tests.support.wait import eventually_true

TOLD_NS = 1_000
"""Launched with this limit, a fabric stands before any script that begins later: `given` tells it to the daemons."""
TOLD_WALL_S = 60.0
SOURCE_VA = 0x1000
TARGET_VA = 1 << 32
R_KEY = 0xBEEF
SETUP_NS = 900
"""How long before the first write the QPs are made."""


class Step(NamedTuple):
    """One command for one node at one fabric instant."""

    at_ns: int
    node: str
    op: str
    args: dict[str, Any]


async def given(fabric: Fabric, steps: Sequence[Step]) -> list["asyncio.Future[Any]"]:
    """Tell the daemons; returns when each has its commands, with what becomes their results once time goes on."""
    results = [
        asyncio.ensure_future(fabric.command(step.node, step.op, step.args, step.at_ns, timeout_s=TOLD_WALL_S))
        for step in steps
    ]
    for node, count in Counter(step.node for step in steps).items():

        async def has_all(node: str = node, count: int = count) -> bool:
            return int((await fabric.call(node, "status"))["commands_taken"]) >= count

        await eventually_true(has_all, TOLD_WALL_S)
    return results


def permutation(topology: Topology, shift: int, size: int, pieces: int, start_ns: int = 1_000) -> list[Step]:
    """Every NIC writes `size` bytes in `pieces` messages to the one `shift` further; both ends are RTR before RTS."""
    steps: list[Step] = []
    names = list(topology.nic_names())
    piece = size // pieces
    setup_ns = start_ns - SETUP_NS
    for index, name in enumerate(names):
        peer, writer = (index + shift) % len(names), (index - shift) % len(names)
        own, theirs = 100 + index, 200 + writer
        connect_own = {"qpn": own, "peer_index": peer, "peer_qpn": 200 + index, "psn_send": 10, "psn_receive": 20}
        connect_theirs = {
            "qpn": theirs, "peer_index": writer, "peer_qpn": 100 + writer, "psn_send": 20, "psn_receive": 10,
        }  # fmt: skip
        source = {"va": SOURCE_VA, "length": size, "region_id": 1, "r_key": 1}
        target = {"va": TARGET_VA, "length": size, "region_id": 2, "r_key": R_KEY}
        steps += [
            Step(setup_ns + 1, name, "register_memory", source),
            Step(setup_ns + 2, name, "register_memory", target),
            Step(setup_ns + 3, name, "create_qp", {"qpn": own}),
            Step(setup_ns + 4, name, "create_qp", {"qpn": theirs}),
            Step(setup_ns + 5, name, "connect_qp", connect_own),
            Step(setup_ns + 6, name, "connect_qp", connect_theirs),
            Step(setup_ns + 7, name, "modify_qp", {"qpn": own, "state": "rts"}),
            Step(setup_ns + 8, name, "modify_qp", {"qpn": theirs, "state": "rts"}),
        ]
        for number in range(pieces):
            offset = number * piece
            write = {
                "qpn": own, "wr_id": number, "local_region": 1, "local_va": SOURCE_VA + offset, "length": piece,
                "remote_va": TARGET_VA + offset, "r_key": R_KEY, "imm": number if number % 2 else None,
            }  # fmt: skip
            steps.append(Step(start_ns + number, name, "post_write", write))
    return steps


def incast(topology: Topology, size: int, start_ns: int = 1_000) -> list[Step]:
    """Every other NIC writes `size` bytes to the first one, each into a region of its own there."""
    first, *senders = topology.nic_names()
    steps: list[Step] = []
    for index, name in enumerate(senders, start=1):
        qpn, key = 100 + index, R_KEY + index
        target = {"va": TARGET_VA * index, "length": size, "region_id": 1 + index, "r_key": key}
        ends = ((name, qpn, 0, 200 + index, 10, 20), (first, 200 + index, index, qpn, 20, 10))
        steps.append(Step(start_ns - 9, first, "register_memory", target))
        steps.append(Step(start_ns - 9, name, "register_memory",
                          {"va": SOURCE_VA, "length": size, "region_id": 1, "r_key": 1}))  # fmt: skip
        for node, own, peer, theirs, send, receive in ends:
            connect = {"qpn": own, "peer_index": peer, "peer_qpn": theirs, "psn_send": send, "psn_receive": receive}
            steps.append(Step(start_ns - 8, node, "create_qp", {"qpn": own}))
            steps.append(Step(start_ns - 7, node, "connect_qp", connect))
            steps.append(Step(start_ns - 6, node, "modify_qp", {"qpn": own, "state": "rts"}))
        write = {"qpn": qpn, "wr_id": 1, "local_region": 1, "local_va": SOURCE_VA, "length": size,
                 "remote_va": TARGET_VA * index, "r_key": key, "imm": None}  # fmt: skip
        steps.append(Step(start_ns, name, "post_write", write))
    return steps
