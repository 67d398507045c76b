"""Knobs of an InfiniBand fabric's links: VLs, service levels, arbitration, buffers, and how old a packet may grow.

Owns names, units, defaults, bounds, and the step from them to the ports of switches and NICs. They stand among the
settings of switches, because both ends of a link must have the same VLs. Defaults of lives and stalls are those of
opensm.

Source: IBTA 7.6 (VLs), 7.9.4 (credits), 14.2.5.6, 18.2.5.4 (lives).
"""

from dataclasses import dataclass
from typing import Final

from mrcfabric.credit_egress_config import STALL_COUNT_MAX, CreditEgressConfig
from mrcfabric.errors import ConfigError, misfit, out_of_order
from mrcfabric.units import Instant
from mrcfabric.vl_arbitration import ENTRIES_MAX, NO_LIMIT, WEIGHT_MAX, Table
from mrcfabric.wire.flow_control import BLOCKS_MAX
from mrcfabric.wire.lrh import MANAGEMENT_VL, SLS, blocks_of

LIFE_UNIT_NS: Final = 4_096
FOR_EVER: Final = 20
"""From this exponent on packets never grow too old."""
EQUAL: Final = "equal"
NONE: Final = "none"
_EQUAL_WEIGHT: Final = 64
"""One packet of 4,096 bytes."""
PACKET_EXTRA_BYTES: Final = 8 + 12 + 16 + 4 + 4 + 2
"""The most that stands around a payload: LRH, BTH, RETH, immediate, both sums."""


@dataclass(frozen=True)
class CreditKnobs:
    """Credits, with `lossless: credits`."""

    vls: int = 2
    """Data VLs of every link."""
    vl_of_sl: str = "modulo"
    """The VL of each service level: `modulo` (the service level modulo `vls`), or 16 numbers with commas, of which 15
    has packets of that level dropped."""
    vl_blocks: int = 1_024
    """What each VL of a port can hold of what comes in, in blocks of 64 bytes, and so the most credit that is out."""
    vl_high: str = NONE
    """The arbitration table of high priority: VL:WEIGHT with commas, a weight being units of 64 bytes; or `none`."""
    vl_low: str = EQUAL
    """The other table. `equal`: every VL that is not in the high one, with one packet of 4 KiB each."""
    vl_high_limit: int = NO_LIMIT
    """Units of 4,096 bytes that the high table may send while the low one waits; 255: no limit."""
    credit_update_blocks: int = 1
    """So many blocks that can be granted anew are granted at once; fewer at the end of the period of 65,536 symbol
    times."""
    head_life: int = 18
    """A packet that has been the next one of its VL and input for 4.096 us times 2 to this power is dropped by the
    switch: 18 is 1.07 s; from 20 on never."""
    head_life_nic: int = 16
    """The same at ports that lead to NICs: 16 is 268 ms."""
    vl_stall_count: int = STALL_COUNT_MAX
    """After so many of them in a row the VL drops everything for eight such lives; 0: never."""


LEAST: Final[dict[str, int]] = {"vl_high_limit": 0, "head_life": 0, "head_life_nic": 0, "vl_stall_count": 0}
"""Smallest value of a number where it is not 1."""
MOST: Final[dict[str, int]] = {
    "vls": MANAGEMENT_VL,
    "vl_blocks": BLOCKS_MAX,
    "vl_high_limit": NO_LIMIT,
    "credit_update_blocks": BLOCKS_MAX,
    "head_life": 31,
    "head_life_nic": 31,
    "vl_stall_count": STALL_COUNT_MAX,
}
"""Largest value where there is one."""
CHOICES: Final[dict[str, tuple[str, ...]]] = {}
"""What a knob that is a name may be."""


def sl2vl(knobs: CreditKnobs) -> tuple[int, ...] | None:
    """By service level its VL; None for a text that will not do."""
    if knobs.vl_of_sl == "modulo":
        return tuple(sl % knobs.vls for sl in range(SLS))
    words = [word.strip() for word in knobs.vl_of_sl.split(",")]
    if len(words) != SLS or not all(word.isascii() and word.isdecimal() and len(word) <= 2 for word in words):
        return None
    vls = tuple(map(int, words))
    return vls if all(vl < knobs.vls or vl == MANAGEMENT_VL for vl in vls) else None


def tables(knobs: CreditKnobs) -> tuple[Table, Table] | None:
    """The arbitration tables of high and of low priority; None for texts that will not do."""
    high = () if knobs.vl_high == NONE else _table(knobs.vl_high, knobs.vls)
    if high is None:
        return None
    if knobs.vl_low == EQUAL:
        first = {vl for vl, weight in high if weight}
        return high, tuple((vl, _EQUAL_WEIGHT) for vl in range(knobs.vls) if vl not in first)
    low = () if knobs.vl_low == NONE else _table(knobs.vl_low, knobs.vls)
    if low is None or {vl for vl, weight in (*high, *low) if weight} != set(range(knobs.vls)):
        return None
    return high, low


def _table(text: str, vls: int) -> Table | None:
    found = []
    for word in text.split(","):
        vl, _, weight = word.strip().partition(":")
        if not all(one.isascii() and one.isdecimal() and len(one) <= 3 for one in (vl, weight)):
            return None
        found.append((int(vl), int(weight)))
    return tuple(found) if all(vl < vls and weight <= WEIGHT_MAX for vl, weight in found) else None


def credit_fault(knobs: CreditKnobs) -> ConfigError | None:
    """What is wrong with the VLs of a fabric; None: nothing."""
    if sl2vl(knobs) is None:
        wanted = f"modulo, or 16 VLs with commas, each 15 or below switch.vls, which is {knobs.vls}"
        return misfit("switch.vl_of_sl", knobs.vl_of_sl, wanted)
    if tables(knobs) is None:
        name = "vl_high" if knobs.vl_low == EQUAL else "vl_low"
        wanted = (
            f"at most {ENTRIES_MAX} of VL:WEIGHT with commas, as 0:64,1:10, that give a turn to each of switch.vls, "
            f"which is {knobs.vls}"
        )
        return misfit(f"switch.{name}", getattr(knobs, name), wanted)
    update, room = knobs.credit_update_blocks, knobs.vl_blocks
    if update > room:
        return out_of_order("switch.credit_update_blocks", update, "switch.vl_blocks", room, equal=True)
    return None


def frame_blocks(mtu_bytes: int) -> int:
    """Blocks of the largest packet."""
    return blocks_of(mtu_bytes + PACKET_EXTRA_BYTES)


def life_ns(exponent: int) -> Instant:
    """How old a packet may grow at the head of its queue; 0: as old as it likes."""
    return LIFE_UNIT_NS << exponent if exponent < FOR_EVER else 0


def credited_port(
    knobs: CreditKnobs, *, rate_bps: int, delay_ns: int, seed: str, mtu_bytes: int, head_life: int = FOR_EVER,
    sl: int = 0,
) -> CreditEgressConfig:  # fmt: skip
    """The configuration of a port. `head_life`: an exponent; `sl`: the service level of the owner's own data.

    The knobs have been checked. Raises ConfigError for buffers that hold no packet.
    """
    both, levels = tables(knobs), sl2vl(knobs)
    assert both is not None
    assert levels is not None
    room, packet = knobs.vl_blocks, frame_blocks(mtu_bytes)
    if room < packet:
        what = f"{room} hold no packet of topology.mtu_bytes, which is {mtu_bytes}"
        hint = f"switch.vl_blocks: {packet} to {BLOCKS_MAX}, or a smaller mtu_bytes"
        raise ConfigError("switch.vl_blocks", what, hint, ("mtu_bytes",))
    return CreditEgressConfig(
        rate_bps=rate_bps,
        delay_ns=delay_ns,
        seed=seed,
        blocks=(knobs.vl_blocks,) * knobs.vls,
        high=both[0],
        low=both[1],
        high_limit=knobs.vl_high_limit,
        update_blocks=knobs.credit_update_blocks,
        head_life_ns=life_ns(head_life),
        stall_count=knobs.vl_stall_count,
        data_vl=levels[sl],
        frame_blocks=packet,
    )
