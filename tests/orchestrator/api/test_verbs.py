"""One set of verbs: what a fabric does by itself, it does whether it was launched here or runs elsewhere."""

import inspect

import pytest

from orchestrator.api.attached import AttachedFabric
from orchestrator.api.verbs import Verbs
from orchestrator.fabric import Fabric


@pytest.mark.parametrize("verb", sorted(Verbs.__abstractmethods__))
def test_both_kinds_of_fabric_take_the_same(verb: str) -> None:
    wanted = inspect.signature(getattr(Verbs, verb)).parameters
    for kind in (Fabric, AttachedFabric):
        taken = inspect.signature(getattr(kind, verb)).parameters
        assert {name: taken[name] for name in wanted} == wanted
        assert inspect.getdoc(getattr(kind, verb))
