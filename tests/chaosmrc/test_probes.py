"""Probes of a fabric that runs."""

from typing import Any

import pytest

from chaosmrc import actions, probes
from mrcfabric.errors import ConfigError
from orchestrator.fabric import Fabric
from tests.chaosmrc.asking import beside
from tests.orchestrator.running import DEADLINE_S

pytestmark = pytest.mark.integration


async def test_what_a_fabric_does_in_plain_figures(served: Fabric, configuration: dict[str, Any]) -> None:
    async def ask(probe: Any, *arguments: Any, **named: Any) -> Any:
        return await beside(probe, *arguments, configuration=configuration, **named)

    assert await ask(probes.all_nodes_up)
    assert await ask(probes.faults) == []
    await ask(actions.start_workload, "p2p", "ping", figures={"message_bytes": 1 << 16})
    assert await ask(probes.workload_state, "ping") in ("running", "done")
    await ask(actions.await_workload, "ping", DEADLINE_S)
    assert await ask(probes.workload_state, "ping") == "done"
    assert await ask(probes.bytes_wrong, "ping") == 0
    assert await ask(probes.total, "bytes_placed") == 16 << 16
    with pytest.raises(ConfigError, match="'qp_error' is no total"):
        await ask(probes.total, "qp_error")
    assert await ask(probes.measure, "qp_errors") in (0, None)
    assert await ask(probes.emulation_valid) in (True, False)
    child = served.daemons.members["h001"].child
    assert child is not None
    await served.daemons.end(child)
    await child.ended
    assert await ask(probes.nodes_down) == ["h001"]
    assert not await ask(probes.all_nodes_up)
    assert await ask(probes.workload_state, "ping") in ("done", "lost")
    assert [fault["kind"] for fault in await ask(probes.faults)] == ["nic_crash"]
