"""An allocation as Slurm 22.05 describes it, made an inventory. A real one: tests/integration/test_under_slurm.py."""

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from mrcfabric.errors import ConfigError
from orchestrator.hosts.placement import allocation
from orchestrator.hosts.placement.allocation import Job, Node, Part
from orchestrator.hosts.placement.inventory import Host, Inventory, Rules

JOB = (
    "JobId=7 JobName=sh UserId=root(0) JobState=RUNNING Reason=None TimeLimit=01:00:00 "
    "StartTime=2026-11-21T18:56:10 EndTime=2026-11-21T19:56:10 ReqNodeList=(null) NodeList=gpu[1-2,5] BatchHost=gpu1 "
    "NumNodes=3 NumCPUs=10 TRES=cpu=10,node=3 JOB_GRES=(null)   Nodes=gpu[1-2] CPU_IDs=0-1,8-9 Mem=4096 GRES= "
    "  Nodes=gpu5 CPU_IDs=3 Mem=0 GRES= MinCPUsNode=1 WorkDir=/srv/user Power= \n"
)
NODES = (
    "NodeName=gpu1 Arch=x86_64 CPUTot=64 NodeAddr=10.0.0.1 NodeHostName=gpu1 State=MIXED \n"
    "NodeName=gpu2 Arch=x86_64 CPUTot=64 NodeAddr=gpu2-ib NodeHostName=gpu2 State=MIXED \n"
    "NodeName=gpu5 Arch=x86_64 CPUTot=64 NodeAddr=10.0.0.5 NodeHostName=gpu5 State=MIXED \n"
)
LISTS = {"gpu[1-2]": ["gpu1", "gpu2"], "gpu5": ["gpu5"]}
PARSED = [
    Node("gpu1", "10.0.0.1", 4, 4 << 30),
    Node("gpu2", "gpu2-ib", 4, 4 << 30),
    Node("gpu5", "10.0.0.5", 1, None),
]
BOTH = {
    "10.0.0.1": ["10.0.0.1"],
    "gpu2-ib": ["127.0.1.1", "fe80::2%eth0", "fd00::2", "10.0.0.2"],
    "10.0.0.5": ["10.0.0.5"],
}


def job() -> Job:
    return allocation.parsed_job("7", JOB)


def test_a_job_and_its_nodes_are_understood() -> None:
    assert job().parts == (Part("gpu[1-2]", 4, 4 << 30), Part("gpu5", 1, None))
    assert job().ends == datetime(2026, 11, 21, 19, 56, 10)
    assert allocation.parsed_nodes(NODES, job(), LISTS) == PARSED


def test_a_job_that_says_nothing_of_its_cores_leaves_them_to_the_hosts() -> None:
    text = JOB.replace("CPU_IDs", "Cpus").replace("EndTime=2026-11-21T19:56:10", "EndTime=Unknown")
    plain = allocation.parsed_job("7", text)
    assert (plain.parts, plain.ends) == ((Part("gpu[1-2,5]", None, None),), None)
    assert allocation.ending(plain, datetime(2026, 11, 21)) == ""


@pytest.mark.parametrize("text", ["", JOB.replace("RUNNING", "COMPLETING")])
def test_a_job_that_does_not_run_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"--engine slurm: job 7 does not run: (nothing is known of it|COMPLETING)"):
        allocation.parsed_job("7", text)


def test_a_job_that_ends_soon_is_told_or_refused() -> None:
    ends = datetime(2026, 11, 21, 19, 56, 10)
    assert allocation.ending(job(), ends - timedelta(hours=1)) == ""
    said = allocation.ending(job(), ends - timedelta(seconds=300))
    assert said == "job 7 ends in 300 s, at 19:56:10, and the fabric with it"
    with pytest.raises(ConfigError, match=r"job 7 ends in 30 s, at 19:56:10 \(salloc .* --time=MINUTES\)"):
        allocation.ending(job(), ends - timedelta(seconds=30))


def test_nodes_get_addresses_of_one_family_that_others_can_reach() -> None:
    hosts = allocation.at_addresses(PARSED, BOTH.__getitem__)
    assert [(host.name, host.data, host.control, host.cores) for host in hosts] == [
        ("gpu1", "10.0.0.1", "10.0.0.1", 4),
        ("gpu2", "10.0.0.2", "10.0.0.2", 4),
        ("gpu5", "10.0.0.5", "10.0.0.5", 1),
    ]
    assert hosts[0].memory_bytes == 4 << 30
    six = allocation.at_addresses(PARSED, lambda address: [*BOTH[address][:-1], f"fd00::{address[-1]}"])
    assert [host.data for host in six] == ["fd00::1", "fd00::2", "fd00::5"]
    [alone] = allocation.at_addresses(PARSED[:1], lambda _address: ["127.0.0.1"])
    assert alone.data == "127.0.0.1"


def test_nodes_without_an_address_of_their_own_are_refused() -> None:
    with pytest.raises(ConfigError, match="host gpu2: Slurm has it at gpu2-ib, for which there is no address"):
        allocation.at_addresses(PARSED, lambda address: BOTH[address][:1])
    with pytest.raises(ConfigError, match=r"host gpu2: 10\.0\.0\.1 is an address of gpu1"):
        allocation.at_addresses(PARSED, lambda _address: ["10.0.0.1"])


def test_an_address_is_itself_and_an_unknown_name_has_none() -> None:
    assert set(allocation.resolve("127.0.0.1")) == {"127.0.0.1"}
    assert allocation.resolve("no such name.") == []
    assert allocation.is_ours("127.0.0.1")
    assert not allocation.is_ours("192.0.2.1")


def inventory(orchestrator: str = "") -> Inventory:
    hosts = (Host.at("gpu5", "192.168.0.5", 8), Host.at("gpu1", "192.168.0.1"))
    return Inventory(hosts, Rules(orchestrator=orchestrator), "hosts.yaml")


def test_what_a_file_says_of_a_node_goes_first() -> None:
    joined = allocation.joined(inventory(), job(), PARSED)
    five, one = joined.hosts
    assert (five.data, five.cores, five.memory_bytes) == ("192.168.0.5", 8, None)
    assert (one.data, one.cores, one.memory_bytes) == ("192.168.0.1", 4, 4 << 30)
    with pytest.raises(ConfigError, match=r"hosts.yaml: host gpu5: is no node of job 7 \(.* it has gpu1, gpu2\)"):
        allocation.joined(inventory(), job(), PARSED[:2])


def test_the_host_that_we_are_on_leads() -> None:
    def there(address: str) -> bool:
        return address == "192.168.0.1"

    assert allocation.led(inventory(), there).rules.orchestrator == "gpu1"
    assert allocation.led(inventory("gpu1"), there).rules.orchestrator == "gpu1"
    assert allocation.led(inventory(), lambda _address: False).rules.orchestrator == ""
    with pytest.raises(ConfigError, match=r"hosts.yaml: host gpu5: is to lead, and this is gpu1"):
        allocation.led(inventory("gpu5"), there)
    with pytest.raises(ConfigError, match="is to lead, and this is none of the hosts"):
        allocation.led(replace(inventory("gpu5")), lambda _address: False)


def test_commands_of_slurm_do_not_take_another_step_for_options() -> None:
    ours = {"SLURM_NTASKS": "8", "SRUN_DEBUG": "3", "SLURM_CONF": "/etc/slurm.conf", "HOME": "/srv/user"}
    assert allocation.environment(ours) == {
        "SLURM_CONF": "/etc/slurm.conf",
        "HOME": "/srv/user",
        "SLURM_TIME_FORMAT": "standard",
    }


def test_outside_an_allocation_and_without_slurm_one_line_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match=r"this is no allocation: SLURM_JOB_ID is not set \(salloc .* sbatch deploy/"):
        allocation.job_here({})
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    with pytest.raises(ConfigError, match="there is no `scontrol` here"):
        allocation.allocated(None, print)


def test_what_the_controller_says_of_an_unknown_job_is_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scontrol = tmp_path / "scontrol"
    scontrol.write_text("#!/bin/sh\necho slurm_load_jobs error: Invalid job id specified >&2; exit 1\n")
    scontrol.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    with pytest.raises(ConfigError, match="Slurm knows no job 7: slurm_load_jobs error: Invalid job id specified"):
        allocation.allocated(None, print)
