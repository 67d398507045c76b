"""The two kinds of fabric of scripts: launched, and attached to."""

from pathlib import Path

import pytest

from mrcfabric.errors import ConfigError
from orchestrator.api.fabric import AttachedFabric, Fabric
from orchestrator.fabric.verbs import Verbs


@pytest.mark.parametrize("kind", [AttachedFabric, Fabric])
def test_nothing_is_left_undone(kind: type[Verbs]) -> None:
    assert not kind.__abstractmethods__


@pytest.mark.integration
async def test_a_script_attaches_to_what_was_launched(served: Fabric) -> None:
    async with Fabric.attach(run_dir=served.folder.path) as there:
        assert isinstance(there, AttachedFabric)
        assert there.topology == served.topology


async def test_no_fabric_to_attach_to(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        async with Fabric.attach(run_dir=tmp_path):
            pass
