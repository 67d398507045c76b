"""Which modules are compiled, and which sources go into the result.

Owns the list. A compiled module takes constants and types also from modules that it imports and that are not compiled:
`sources` finds these, so that a change of one of them is noticed as well.
"""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

FOLDERS: Final[dict[str, str]] = {
    "mrcfabric": """
        class_egress clock credit_egress credit_waits drive egress egress_queues egress_wire impaired_link link_credits
        link_port node plane_ports port_counts rng runner trains udp units vl_arbitration vl_queues
        """,
    "mrcfabric/sim": "simulator trace",
    "mrcfabric/wire": """
        crc32c entropy fastpath flow_control icrc layout lrh lrh_rc roce roce_layout routing_notice segments srh
        templates trim uet uet_layout uet_templates usid vcrc
        """,
    "nicd/core": """
        board class_ports credit_holder credit_ports ev_state lag memory message nic onchip pause_sender pause_watch
        ports qp_state queue_pair scheduler stamps stats timers transport transports widths
        """,
    "nicd/core/congestion": """
        growth_bound guessed_lengths lateness nscc nscc_constants open_window paced_growth plane_lengths plane_windows
        probed_lengths ways_back window
        """,
    "nicd/core/mrc": """
        assembly backlog board doubt_probes doubts early_acks ev_deck ev_profile ev_rules inflight late_arrivals
        length_probes mark_runs
        path_lengths path_order path_policy path_records path_search path_shares patience peer penalty probe
        probe_turns qp recovery requestor responder reverse_set sack sack_spans search_rounds sent transport
        """,
    "nicd/core/rc": """
        dcqcn lid_ways notification out_of_order posted qp rc_stats requestor responder selective selective_responder
        transport ways
        """,
    "nicd/core/uet": """
        contexts credits entropy initiator kept outstanding oversubscribed patience peer planes qp refusals silence
        target transport uet_stats under_way
        """,
    "nicd/programs": "hosted_nic",
    "switchd/core": "buffer credited endpoint fib lossless ordered routed shield speaking switch waiting watchdog",
    "switchd/core/forwarding": "ecmp learned lft usid witnessed",
}
"""Folder -> the modules in it that packets pass through, and those that these call. Settings, commands, events, reports
and the complete parser of headers stay with the interpreter: they are rare on that way, and easier to look into."""
ROOTS: Final = ("mrcfabric", "nicd", "switchd")


def compiled() -> list[Path]:
    """The files to compile, from the root of the source tree, sorted."""
    return sorted(Path(folder, f"{name}.py") for folder, names in FOLDERS.items() for name in names.split())


def module_name(path: Path) -> str:
    """nicd/core/nic.py -> nicd.core.nic."""
    return ".".join(path.with_suffix("").parts)


def sources(root: Path, paths: Iterable[Path]) -> list[Path]:
    """These files and all files of the packages that they import, directly or not, sorted."""
    waiting, seen = list(paths), set[Path]()
    while waiting:
        path = waiting.pop()
        if path not in seen:
            seen.add(path)
            waiting += (file for name in _imported(root / path) if (file := _file(root, name)) is not None)
    return sorted(seen)


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(), path.as_posix())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _file(root: Path, name: str) -> Path | None:
    if name.partition(".")[0] not in ROOTS:
        return None
    path = Path(*name.split("."))
    for candidate in (path.with_suffix(".py"), path / "__init__.py"):
        if (root / candidate).is_file():
            return candidate
    return None
