"""One session per fabric, opened when first needed; what it cannot open it says at once."""

from pathlib import Path
from typing import Any

import pytest

from chaosmrc.session import FOLDER_KEY, NAME_KEY, close_all, session_of
from mrcfabric.errors import ConfigError
from orchestrator.fabric import Fabric
from tests.chaosmrc.asking import beside
from tests.orchestrator.running import DEADLINE_S
from tests.support.wait import eventually


def test_a_fabric_that_does_not_run_leaves_no_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        with pytest.raises(ConfigError, match="no fabric runs there"):
            session_of({NAME_KEY: "nobody"})
    with pytest.raises(ConfigError, match="none runs below"):
        session_of(None)
    close_all()


@pytest.mark.parametrize(
    ("configuration", "said"),
    [
        ("demo", "configuration: 'demo' is no table"),
        (["demo"], r"configuration: \['demo'\] is no table"),
        ({NAME_KEY: ["demo"]}, rf"{NAME_KEY}: \['demo'\] is no text"),
        ({FOLDER_KEY: 7}, f"{FOLDER_KEY}: 7 is no text"),
        ({FOLDER_KEY: "out/demo\0"}, r"run_dir: 'out/demo\\x00' is no path"),
    ],
)
def test_a_configuration_of_other_types_is_named(configuration: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        session_of(configuration)


@pytest.mark.integration
async def test_a_session_is_opened_once_and_takes_its_faults_with_it(
    served: Fabric, configuration: dict[str, str]
) -> None:
    session = await beside(session_of, configuration)
    assert await beside(session_of, {FOLDER_KEY: configuration[FOLDER_KEY], "other": 1}) is session
    fault = await beside(lambda: session.do(session.fabric.add_fault("link_down", "p0-t0-0~p0-t1-0")))
    assert [one.owner for one in served.faults()] == [fault.owner]
    assert fault.owner == session.fabric.owner
    await beside(close_all)
    await eventually(lambda: not served.faults(), DEADLINE_S)
