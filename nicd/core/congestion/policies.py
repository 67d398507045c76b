"""Congestion policies by name.

Owns the table that the knob `congestion` chooses from. To plug another policy in, give `register` its name and a
function that makes a `CongestionWindow` from a `WindowSetup`, before settings are read. `window` says what a
policy is told and must keep. MRC 1.0 4: NSCC is the default, vendors may add others.
"""

from typing import Final

from nicd.core.congestion.nscc import Nscc
from nicd.core.congestion.window import CongestionWindow, FixedWindow, Policy, WindowSetup

POLICIES: Final[dict[str, Policy]] = {"nscc": Nscc, "fixed": FixedWindow.made_for}
"""What makes the window towards a destination."""


def register(name: str, policy: Policy) -> None:
    """Make a policy known under a name that no other has."""
    assert name not in POLICIES, f"two congestion policies of the name {name}"
    POLICIES[name] = policy


def window_towards(setup: WindowSetup) -> CongestionWindow:
    """A window as the settings name it, for one destination."""
    return POLICIES[setup.settings.congestion](setup)
