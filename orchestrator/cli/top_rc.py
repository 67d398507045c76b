"""What `mrcfabric top` says of RC NICs, where those of MRC have EVs. Pure."""

from collections.abc import Iterator
from typing import Final

from rich.text import Text

from mrcfabric.units import GBPS
from orchestrator.cli.rc_text import rc_text
from orchestrator.live.rc_view import rc_sums
from orchestrator.live.snapshot import NicView, Snapshot

RC_HEADS: Final = (
    f"{'NIC':10}{'Gb/s':>9}{'QPs':>6}{'errors':>8}{'rate':>8}{'CNP/s':>9}{'NAK/s':>8}{'again B':>10}"
    f"{'paused':>8}{'ports':>8}"
)
_WRONG: Final = "bold red"


def is_rc(shot: Snapshot) -> bool:
    """Whether the NICs of a fabric are RC NICs."""
    return any(nic.rc is not None for nic in shot.nics.values())


def rc_lines(shot: Snapshot) -> list[Text]:
    """Two lines for all RC NICs together; none for others."""
    sums = rc_sums(shot.nics.values())
    return [] if sums is None else [Text(line) for line in rc_text(sums)]


def rc_rows(shot: Snapshot, count: int) -> Iterator[Text]:
    """The `count` NICs with the most to tell: those with QPs in error, then those paused longest, then the busiest."""

    def rank(name: str) -> tuple[bool, float, float, str]:
        nic = shot.nics[name]
        return not nic.qp_errors, -max(nic.paused, default=0.0), -nic.goodput_bps, name

    for name in sorted(shot.nics, key=rank)[:count]:
        yield _row(name, shot.nics[name])


def _row(name: str, nic: NicView) -> Text:
    down = nic.ports_up.count(False)
    line = Text(f"{name:10}{nic.goodput_bps / GBPS:9,.1f}{nic.qps:6}")
    line.append(f"{nic.qp_errors:8}", _WRONG if nic.qp_errors else "")
    if nic.rc is not None:
        cnps, naks = (
            nic.rc.cnps_sent_per_s + nic.rc.cnps_received_per_s, nic.rc.naks_sent_per_s + nic.rc.naks_received_per_s
        )  # fmt: skip
        line.append(f"{nic.rc.rate_bps_mean / GBPS:8.1f}{cnps:9,.0f}{naks:8,.0f}{nic.rc.retransmitted_bytes:10,}")
    line.append(f"{max(nic.paused, default=0.0):8.0%}")
    return line.append(f"{len(nic.ports_up) - down:4} up", _WRONG if down else "")
