"""Which kind of switch core a configuration asks for."""

from mrcfabric.units import Instant
from switchd.core.credited import CreditSwitch
from switchd.core.forwarding.ecmp import EcmpForwarding
from switchd.core.forwarding.learned import LearnedForwarding
from switchd.core.forwarding.lft import LftForwarding
from switchd.core.forwarding.usid import UsidForwarding
from switchd.core.lossless import LosslessSwitch
from switchd.core.routed import RoutedSwitch
from switchd.core.routing.router import Router
from switchd.core.settings import SwitchConfig
from switchd.core.speaking import SpeakingLosslessSwitch, SpeakingSwitch
from switchd.core.switch import Switch


def build_switch(config: SwitchConfig, start_ns: Instant = 0) -> Switch:
    """A switch that begins at `start_ns`: by uSIDs with the loop made for them, else behind its forwarding, with a
    routing core if it has one."""
    if config.credits is not None and config.lft is not None:
        return CreditSwitch(config, LftForwarding(config.lft, len(config.ports)), start_ns)
    if config.routing is not None and config.ecmp is not None:
        learned = LearnedForwarding(config.ecmp)
        router = Router(config.routing, learned, start_ns)
        kind = SpeakingSwitch if config.lossless is None else SpeakingLosslessSwitch
        return kind(config, learned, router, start_ns)
    if config.lossless is not None:
        forwarding = UsidForwarding(config) if config.ecmp is None else EcmpForwarding(config.ecmp)
        return LosslessSwitch(config, forwarding, start_ns)
    if config.ecmp is not None:
        return RoutedSwitch(config, EcmpForwarding(config.ecmp), start_ns)
    return Switch(config, start_ns)
