"""Verbs for scripts: both kinds of fabric have them, and they are the same."""

import pytest

from orchestrator import fabric as package
from orchestrator.api.fabric import AttachedFabric, Fabric
from orchestrator.api.scripting import Scripting


@pytest.mark.parametrize("kind", [AttachedFabric, Fabric])
@pytest.mark.parametrize("verb", ["start", "watch", "until", "works"])
def test_both_kinds_of_fabric_have_the_same(kind: type, verb: str) -> None:
    assert getattr(kind, verb) is getattr(Scripting, verb)


def test_scripts_find_the_class_where_it_always_was() -> None:
    assert package.Fabric is Fabric
    with pytest.raises(AttributeError, match="no attribute 'Fabrik'"):
        _ = package.Fabrik  # type: ignore[attr-defined]
