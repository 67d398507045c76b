"""What state.json says of a fabric, and that a death is no reason to fail when it cannot be written."""

import shutil
from pathlib import Path

from mrcfabric.control import Realm
from orchestrator.fabric.daemons import Daemons
from orchestrator.fabric.journal import Journal
from orchestrator.fabric.state_file import StateFile
from orchestrator.hosts.clock.timekeeper import Timekeeper
from orchestrator.hosts.cluster import Cluster
from orchestrator.hosts.placement.layout import Layout
from orchestrator.process import run_folder
from orchestrator.process.run_folder import RunFolder
from tests.orchestrator.running import SMALL, T0

EPOCH, PID = 77, 4242


def test_it_says_where_everything_is_and_survives_a_folder_that_is_gone(tmp_path: Path) -> None:
    folder, journal, layout = RunFolder.claim(tmp_path / "run"), Journal(), Layout(SMALL, "none")
    time = Timekeeper(layout.peers(), len(layout.processes), (SMALL.link_delay_ns, SMALL.link_delay_ns_max), 1.0)
    try:
        daemons = Daemons(layout, Cluster(), time, Realm(folder.secret, SMALL.name, EPOCH), trace=False)
        file = StateFile(folder, daemons, EPOCH, PID, journal)
        file.write()
        state = run_folder.read_state(folder.path)
        assert state is not None
        assert state == file.content()
        assert (state["name"], state["epoch"], state["forkserver_pid"]) == (SMALL.name, EPOCH, PID)
        assert state["nodes"][T0] == {
            "pid": None,
            "alive": False,
            "process": T0,
            "incarnation": 0,
            "host": None,
            "control": list(layout.control_address(T0)),
        }
        assert not journal.after(0)
        folder.path.rename(tmp_path / "elsewhere")
        file.update(8)
        moved = run_folder.read_state(tmp_path / "elsewhere")
        assert moved is not None
        assert moved["agent_socket"] == str(tmp_path / "elsewhere" / "agent.sock")
        shutil.rmtree(tmp_path / "elsewhere")
        file.update(9)
        assert [note["kind"] for note in journal.after(0)] == ["unwritten"]
    finally:
        time.close()
        folder.release()
