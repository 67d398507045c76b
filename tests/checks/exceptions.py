"""What the checks let through. These tables may only shrink: an entry that is no longer needed fails the checks.

Adding an entry needs a reason that a reviewer accepts, written behind it.
"""

from typing import Final

UNTWINNED: Final[dict[str, str]] = {
    "nicd/core/mrc/sent.py": "a record without behaviour; shown by the tests of the in-flight table",
    "orchestrator/hosts/host_start.py": "what a cluster asks of whoever starts shares: types only",
    "mrcfabric/units.py": "constants and type names only",
    "nicd/core/commands.py": "records only; test_nic shows what each does",
    "nicd/core/commands_paths.py": "records only; test_path_control and test_profile_control show what each does",
    "nicd/core/settings_bounds.py": "knobs only; test_settings shows defaults, bounds and relations",
    "nicd/core/settings_dcqcn.py": "knobs only; test_settings shows defaults, bounds and relations",
    "nicd/core/settings_rc.py": "knobs only; test_settings shows defaults, bounds and relations",
    "nicd/core/settings_lid.py": "knobs only; test_settings shows defaults, bounds and relations",
    "nicd/core/settings_sm.py": "knobs only; test_settings shows defaults, bounds and relations",
    "nicd/core/settings_host.py": "knobs only; test_settings shows defaults, bounds and relations",
    "nicd/core/settings_congestion.py": "knobs only; test_settings shows defaults, bounds and relations",
    "nicd/core/settings_onchip.py": "knobs only; test_settings shows defaults, bounds and relations",
    "nicd/core/settings_paths.py": "knobs only; test_settings shows defaults, bounds and relations",
    "nicd/core/settings_reliability.py": "knobs only; test_settings shows defaults, bounds and relations",
    "nicd/core/settings_uet.py": "knobs only; test_settings shows defaults, bounds and relations",
    "nicd/core/settings_self_probe.py": "knobs only; test_settings shows defaults, bounds and relations",
    "orchestrator/measures/expectation.py": "records only; test_judge shows what each means",
    "orchestrator/runs/backend.py": "the interface of a bed: types only",
    "orchestrator/scenario/plan.py": "records only; test_resolve shows them",
    "switchd/core/commands.py": "records only; test_switch shows what each does",
    "switchd/core/settings_lossless.py": "knobs only; test_settings shows defaults, bounds and relations",
    "switchd/core/settings_lft.py": "knobs only; test_settings shows defaults, bounds and relations",
    "switchd/core/settings_bgp.py": "knobs only; test_compose_routing shows bounds and relations",
    "switchd/core/settings_bfd.py": "knobs only; test_compose_routing shows bounds",
    "switchd/core/routing/config.py": "records only; test_compose_routing shows them",
    "switchd/core/events_routing.py": "records only; test_router and test_writer show them",
    "switchd/core/settings_forwarding.py": "knobs only; test_settings shows defaults, bounds and relations",
    "switchd/core/events.py": "one record; test_switch shows it",
}
"""Source modules without a test file of their own, and why."""

LONG_FILES: Final[dict[str, int]] = {}
"""Files beyond FILE_LINES_MAX, and how long they may be."""

LONG_FUNCTIONS: Final[dict[str, int]] = {}
"""Functions (`path:qualified.name`) beyond FUNCTION_LINES_MAX, and how long they may be."""
