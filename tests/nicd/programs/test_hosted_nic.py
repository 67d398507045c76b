"""The NIC that daemons and the simulator run has a host."""

from nicd.compose import nic_config
from nicd.programs.hosted_nic import HostedNic
from tests.support.hosted import SMALL


def test_it_begins_without_programs() -> None:
    nic = HostedNic(nic_config(SMALL, "h000"))
    assert nic.host.records() == []
    assert nic.host.progress() == {}
    assert nic.next_timeout() is None
