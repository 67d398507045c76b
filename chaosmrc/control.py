"""A control for the Chaos Toolkit: at the end of an experiment it releases the fabric, which heals the faults.

    "controls": [{"name": "mrcfabric", "provider": {"type": "python", "module": "chaosmrc.control"}}]

Without this control the same happens when the process of `chaos run` ends.
"""

from typing import Any

from chaosmrc.session import close_all

__all__ = ["after_experiment_control"]


def after_experiment_control(context: Any = None, **_others: Any) -> None:
    """Called by the Chaos Toolkit after the rollbacks."""
    close_all()
