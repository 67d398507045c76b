"""Drawing settings: any knob of any settings class, from the class's own tables, so that a new knob is drawn by itself.

A value is drawn by the kind of the knob's default: truth values at random, names from CHOICES, whole numbers and
shares around the default and inside the bounds. What the class refuses (relations between knobs) is put back to its
default, one knob at a time. Only knobs whose bounds a workload would run into at once have floors here.
"""

from collections.abc import Callable, Mapping
from dataclasses import Field, fields
from typing import Any, Final, TypeAlias

from mrcfabric.errors import ConfigError
from mrcfabric.rng import PPM, Rng
from mrcfabric.topology import Topology
from mrcfabric.vl_settings import CreditKnobs
from nicd.compose import TOPOLOGY_FIGURES, nic_config
from nicd.core import settings as nic_tables
from nicd.core.settings import NicSettings
from nicd.core.settings_dcqcn import DcqcnKnobs
from nicd.core.settings_lid import LidKnobs
from nicd.core.settings_rc import RcKnobs
from nicd.core.settings_sm import SmKnobs
from nicd.core.settings_uet import UetKnobs
from switchd.compose import switch_config
from switchd.core.settings import SwitchSettings
from switchd.core.settings_bfd import BfdKnobs
from switchd.core.settings_bgp import BgpKnobs
from switchd.core.settings_forwarding import ForwardingKnobs
from switchd.core.settings_lft import LftKnobs
from switchd.core.settings_lossless import LosslessKnobs

Values: TypeAlias = dict[str, Any]

SPREAD_BITS: Final = 3
"""A number is drawn up to eight times smaller or larger than its default."""
FLOORS: Final[Mapping[str, int]] = {
    # A NIC that cannot hold the workload refuses it, which proves little.
    "work_requests_max": 64,
    "qps_max": 64,
    "regions_max": 256,
    "region_bytes_max": 1 << 24,
    "events_max": 1 << 14,
}
"""Least values that a drawn workload needs."""
SWITCH_PACKETS_MIN: Final = 3
"""A queue that does not hold this many full packets passes nothing on."""
FIXED: Final = frozenset(TOPOLOGY_FIGURES) | {"base_rtt_ns"}
"""Knobs that follow from the topology."""
OTHER_FABRICS: Final = frozenset(
    knob.name
    for kind in (
        ForwardingKnobs,
        LftKnobs,
        LosslessKnobs,
        CreditKnobs,
        BgpKnobs,
        BfdKnobs,
        RcKnobs,
        DcqcnKnobs,
        LidKnobs,
        SmKnobs,
        UetKnobs,
    )
    for knob in fields(kind)
)
"""Knobs of RC and UET, and of switches that forward by a hash or a LID, or hold their neighbours up; the fabrics drawn
here are MRC's."""


def draw_settings(topology: Topology, seed: int, share_ppm: int) -> Topology:
    """The same topology with about `share_ppm` of all knobs of its NICs and switches set otherwise.

    Every knob has a random stream of its own: a new one leaves what a seed draws for the others as it was.
    """
    nic = draw_knobs(NicSettings, "swarm", seed, share_ppm, nic_bounds)
    switch = draw_knobs(SwitchSettings, "swarm", seed, share_ppm, switch_bounds)
    nic = {name: value for name, value in nic.items() if name not in FIXED | OTHER_FABRICS}
    switch = {name: value for name, value in switch.items() if name not in OTHER_FABRICS}
    for name, value in switch.items():
        if isinstance(value, float):
            least = SWITCH_PACKETS_MIN * (topology.mtu_bytes + 256) / topology.plane_bdp_bytes
            switch[name] = round(max(value, least), 3)
    return _accepted(topology, nic, switch)


def nic_bounds(name: str, default: int) -> tuple[int, int]:
    """Least and greatest value of a whole number of NICs."""
    least = max(nic_tables._LEAST.get(name, 1), FLOORS.get(name, 0))
    return least, nic_tables._MOST.get(name, 1 << 40)


def switch_bounds(name: str, default: int) -> tuple[int, int]:
    """The same of switches."""
    return 0, 1 << 30


def draw_knobs(
    kind: type[Any], stream: str, seed: int, share_ppm: int, bounds: Callable[[str, int], tuple[int, int]]
) -> Values:
    """Knob -> value, of those that are set; `stream` is the first name of each knob's own random stream."""
    found: Values = {}
    for knob in fields(kind):
        rng = Rng(stream, seed, kind.__name__, knob.name)
        if rng.chance(share_ppm):
            value = _value(knob, rng, bounds)
            if value is not None:
                found[knob.name] = value
    return found


def _value(knob: Field[Any], rng: Rng, bounds: Callable[[str, int], tuple[int, int]]) -> Any:
    default = knob.default
    if isinstance(default, bool):
        return not default
    if isinstance(default, str):
        choices = sorted(nic_tables._CHOICES.get(knob.name, ()))
        return choices[rng.below(len(choices))] if choices else None
    if isinstance(default, float):
        return round(default * _factor(rng), 3)
    if isinstance(default, int):
        least, most = bounds(knob.name, default)
        if knob.name in nic_tables.DERIVED and default == 0:
            # In base RTTs; the topology's own is laid in by `_accepted`.
            return nic_tables.DERIVED[knob.name] * _factor(rng)
        if default == 0:
            return _instead_of_zero(knob.name, rng, least, most)
        return min(most, max(least, int(default * _factor(rng))))
    return None


def _instead_of_zero(name: str, rng: Rng, least: int, most: int) -> int | float:
    """For a knob that is off or derived at 0: times in base RTTs, sizes up to a megabyte, numbers up to 4096."""
    if name.endswith("_ns"):
        return _factor(rng)
    return min(most, max(least, 1, 1 << rng.below(21 if "bytes" in name else 13)))


def _factor(rng: Rng) -> float:
    """Between 1/8 and 8, small steps as likely as large ones."""
    # Powers of whole exponents only: the same on every machine.
    return float(2.0 ** (rng.below(2 * SPREAD_BITS) - SPREAD_BITS)) * (PPM + rng.below(PPM)) / PPM


def _accepted(topology: Topology, nic: Values, switch: Values) -> Topology:
    """With the knobs that the cores accept together; the others keep their defaults."""
    base_rtt_ns = topology.base_rtt_ns()
    nic = {name: max(1, int(value * base_rtt_ns)) if isinstance(value, float) else value for name, value in nic.items()}
    while True:
        drawn = topology.from_dict({**topology.to_dict(), "nic": nic, "switch": switch})
        try:
            nic_config(drawn, next(drawn.nic_names()))
            for name in drawn.switch_names():
                switch_config(drawn, name)
            return drawn
        except ConfigError as error:
            put_back(str(error), nic, switch)


def put_back(text: str, nic: Values, switch: Values) -> None:
    """Forget the knob an error names; when it names none that was drawn, one that stands in the text, or the last."""
    for prefix, drawn in (("nic.", nic), ("switch.", switch)):
        named = [name for name in drawn if f"{prefix}{name}" in text] or [name for name in drawn if name in text]
        if named:
            del drawn[named[0]]
            return
    (nic or switch).popitem()
