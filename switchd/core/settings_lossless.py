"""Knobs of a lossless switch: which classes are paused rather than dropped, its buffer, and its marks in bytes.

Owns names, units, defaults and bounds; `switchd.core.buffer` and `switchd.core.lossless` give them their meaning.
Defaults are those of public simulators and drivers.
"""

from dataclasses import dataclass
from typing import Final

from mrcfabric.class_egress_config import CLASSES, WEIGHT_MAX
from mrcfabric.pause_spells import PAUSE_EVENT_NS
from mrcfabric.wire.dscp import CONTROL_CLASS
from mrcfabric.wire.pfc import QUANTA_MAX

NO_CLASS: Final = "none"
HEADROOM_KINDS: Final = ("exact", "deployed")


# IEEE 802.1Q 36 (priority-based flow control).
@dataclass(frozen=True)
class LosslessKnobs:
    """Priority-based flow control, and RED in bytes."""

    lossless: str = "off"
    """`pfc`: ports have eight classes by DSCP, and those of `pfc_classes` are paused hop by hop instead of
    dropped. `credits`: links of InfiniBand, on which nothing starts that its receiver has no room for."""
    pfc_classes: str = "3"
    """The lossless classes, with commas: `3` or `3,4`."""
    class_strict: str = "6,7"
    """The classes of a port that go before all others, the highest number first, with commas, or `none`. MRC's control
    packets and RC's answers are in class 6. Packets of a strict class are not marked."""
    class_weights: str = "1,1,1,1,1,1,1,1"
    """By class, 0 to 7, its part of the wire among those that are not strict and have packets that may go: eight
    numbers from 1 to 1,000."""
    buffer_bytes: int = 12 << 20
    """The buffer that all ports of a switch share."""
    pfc_threshold: str = "dynamic"
    """When to pause: `static` at `pfc_xoff_bytes`; `dynamic` at the unused pool shifted right by `pfc_alpha_shift`."""
    pfc_xoff_bytes: int = 256 << 10
    """Bytes of one (ingress port, class), reserved ones included, at which its neighbour is paused."""
    pfc_alpha_shift: int = 3
    """3: one eighth of the unused pool."""
    pfc_reserved_bytes: int = 4096
    """Bytes that each (ingress port, class) has to itself."""
    pfc_xon_offset_bytes: int = 3072
    """So far below the threshold the neighbour may go on."""
    pfc_headroom: str = "exact"
    """What each lossless (ingress port, class) keeps for frames that come after the pause: `exact` what the link needs,
    `deployed` what drivers reserve, or a number of bytes."""
    pfc_cable_metres: int = 100
    """The cable that `deployed` reckons with."""
    pfc_quanta: int = QUANTA_MAX
    """Length of a pause, in 512 bit times of the port; the switch repeats it at half time while it lasts."""
    pfc_watchdog_ns: int = 0
    """A class of a port that its neighbour has paused for so long without a break stops obeying; 0: never."""
    pfc_watchdog_restore_ns: int = 200_000_000
    """And obeys again after so long without a pause frame."""
    pfc_event_ns: int = PAUSE_EVENT_NS
    """Pauses of a class of a port, of a NIC's too, that add up to so much without a break as long are an event; 0: none
    is."""
    ecn_min_bytes: int = 0
    """Bytes instead of the share `ecn_min`; 0: by share."""
    ecn_max_bytes: int = 0
    """Bytes instead of the share `ecn_max`; 0: by share. Published for RoCE with `ecn_max_ppm` 200,000: 100 KB and
    400 KB at 25 Gb/s, 400 KB and 1,600 KB at 100 Gb/s."""


LEAST: Final[dict[str, int]] = {
    "buffer_bytes": 1,
    "pfc_xoff_bytes": 1,
    "pfc_alpha_shift": 0,
    "pfc_reserved_bytes": 0,
    "pfc_xon_offset_bytes": 0,
    "pfc_cable_metres": 0,
    "pfc_quanta": 1,
    "pfc_watchdog_ns": 0,
    "pfc_watchdog_restore_ns": 0,
    "pfc_event_ns": 0,
    "ecn_min_bytes": 0,
    "ecn_max_bytes": 0,
}
"""Smallest value of each number."""
MOST: Final[dict[str, int]] = {
    "buffer_bytes": 1 << 40,
    "pfc_alpha_shift": 16,
    "pfc_cable_metres": 100_000,
    "pfc_quanta": QUANTA_MAX,
}
"""Largest value where there is one."""
CHOICES: Final[dict[str, tuple[str, ...]]] = {
    "lossless": ("off", "pfc", "credits"),
    "pfc_threshold": ("static", "dynamic"),
}
"""What a knob that is a name may be."""


def lossless_classes(text: str) -> tuple[int, ...] | None:
    """The classes that `pfc_classes` names, in order; None for a text that names none or no such."""
    names = [name.strip() for name in text.split(",")]
    if not all(name.isascii() and name.isdecimal() and len(name) == 1 for name in names):
        return None
    classes = tuple(sorted(map(int, names)))
    return classes if len(set(classes)) == len(classes) and classes[-1] < CLASSES else None


def strict_classes(text: str) -> tuple[int, ...] | None:
    """The classes that `class_strict` names; None for a text that will not do."""
    return () if text == NO_CLASS else lossless_classes(text)


def class_weights(text: str) -> tuple[int, ...] | None:
    """The weights that `class_weights` names, by class; None for a text that will not do."""
    words = [word.strip() for word in text.split(",")]
    if len(words) != CLASSES or not all(word.isascii() and word.isdecimal() and len(word) <= 4 for word in words):
        return None
    weights = tuple(map(int, words))
    return weights if all(1 <= weight <= WEIGHT_MAX for weight in weights) else None


def class_fault(knobs: LosslessKnobs) -> tuple[str, str] | None:
    """What is wrong with the classes of a port: the knob, and what is wanted; None: nothing."""
    lossless, strict = lossless_classes(knobs.pfc_classes), strict_classes(knobs.class_strict)
    if lossless is None:
        return "pfc_classes", "different classes from 0 to 7, as 3 or 3,4"
    if strict is None:
        return "class_strict", "different classes from 0 to 7, as 6,7, or none"
    if class_weights(knobs.class_weights) is None:
        return "class_weights", f"eight numbers from 1 to {WEIGHT_MAX}, as 1,1,1,4,1,1,1,1"
    first = [cls for cls in lossless if cls in strict and (cls > CONTROL_CLASS or CONTROL_CLASS not in strict)]
    if knobs.lossless == "pfc" and first:
        name = "pfc_classes" if knobs.class_strict == LosslessKnobs.class_strict else "class_strict"
        wanted = f"no lossless class that goes before class {CONTROL_CLASS}, as {first[0]} would: its data"
        return name, f"{wanted} would keep acknowledgements from leaving"
    return None


def headroom_fault(text: str) -> bool:
    """Whether `pfc_headroom` is neither a known kind nor a number of bytes."""
    return text not in HEADROOM_KINDS and not (text.isascii() and text.isdecimal() and len(text) <= 12)
