"""Faults of a running fabric: resolved and checked in one place, listed while they last, noted in the journal."""

import pytest

from mrcfabric.errors import ConfigError, RefusedError
from orchestrator.fabric import Fabric
from orchestrator.faults.fault import Fault, once
from tests.orchestrator.running import T1, broken, carrier, healed

pytestmark = pytest.mark.integration


async def test_a_port_goes_down_and_comes_back(fabric: Fabric) -> None:
    fault = await broken(fabric, "nic_port_down", "h001:1")
    assert [await carrier(fabric, "h001", plane) for plane in (0, 1)] == [1, 0]
    assert [(one.id, one.kind, one.targets) for one in fabric.active_faults()] == [
        (fault, "nic_port_down", ("h001:1",))
    ]
    await healed(fabric, fault)
    assert await carrier(fabric, "h001", 1) == 1
    assert fabric.faults() == []


async def test_instants_that_cannot_be_met_are_refused(fabric: Fabric) -> None:
    now_ns = (await fabric.clock()).next_ns
    await broken(fabric, "link_down", f"p0-t0-0~{T1}")
    with pytest.raises(RefusedError, match="has passed"):
        await fabric.inject(once("link_down", f"p0-t0-1~{T1}", at_ns=now_ns))
    soon_ns = fabric.soon_ns()
    with pytest.raises(ConfigError, match="frames on their way need that long"):
        await fabric.inject(once("switch_crash", T1, at_ns=soon_ns, until_ns=soon_ns + 100))


async def test_a_fault_without_windows_is_a_mistake_like_any(fabric: Fabric) -> None:
    with pytest.raises(ConfigError, match=r"f1: has 0 windows \(1 to 4096\)"):
        await fabric.inject(Fault("f1", "link_down", (f"p0-t0-0~{T1}",), ()))
    assert fabric.faults() == []


async def test_figures_of_another_type_leave_fabric_time_alone(fabric: Fabric) -> None:
    fault = await fabric.add_fault("link_down", f"p0-t0-0~{T1}")
    soon_ns = fabric.soon_ns() + 1_000_000
    link = f"p0-t0-1~{T1}"
    for refused in (
        fabric.heal(fault.id, soon_ns + 0.5),  # type: ignore[arg-type]
        fabric.limit(5e5),  # type: ignore[arg-type]
        fabric.limit(1 << 70),
        fabric.inject(once("link_down", link, at_ns=float(soon_ns))),  # type: ignore[arg-type]
        fabric.inject(None),  # type: ignore[arg-type]
        fabric.add_fault("loss", link, for_ns=5e5),  # type: ignore[arg-type]
        fabric.add_fault("loss", link, figures=[1]),  # type: ignore[arg-type]
        fabric.reached("5us"),  # type: ignore[arg-type]
    ):
        with pytest.raises(ConfigError):
            await refused
    assert dict(fabric.injector.injected) == {"link_down": 1}
    await fabric.heal(fault.id)
    now_ns = fabric.soon_ns()
    assert await fabric.limit(now_ns) == now_ns
    assert await fabric.limit(None) is None


async def test_a_fault_is_counted_and_noted_as_it_was_taken(fabric: Fabric) -> None:
    fault = once("switch_reboot", T1, at_ns=fabric.soon_ns(), until_ns=fabric.soon_ns() + 1_000_000, fault_id="f1")
    assert await fabric.inject(fault) == fault
    assert dict(fabric.injector.injected) == {"switch_reboot": 1}
    [note] = [note for note in fabric.journal.after(0) if note["kind"] == "fault"]
    assert (note["id"], note["fault"], note["of"], note["until_ns"]) == ("f1", "switch_reboot", T1, fault.end_ns)
    with pytest.raises(RefusedError, match="there is a fault f1 already"):
        await fabric.inject(fault)
    assert dict(fabric.injector.injected) == {"switch_reboot": 1}, "what is refused has not happened"


async def test_what_is_not_there_cannot_be_healed(fabric: Fabric) -> None:
    with pytest.raises(RefusedError, match="f9"):
        await fabric.heal("f9")
