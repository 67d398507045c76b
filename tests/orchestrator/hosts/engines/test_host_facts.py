"""What is said of a host that will not do."""

from typing import Any

import pytest

from mrcfabric.errors import ConfigError
from orchestrator.hosts.engines.engine import Listening
from orchestrator.hosts.engines.host_facts import HostFacts

GOOD: dict[str, Any] = {
    "python": [3, 11, 2],
    "user": "mrc",
    "run_dir": "/srv/mrc",
    "unwritable": "",
    "ports": [""],
    "installed": None,
    "missing": ["numpy>=1.26"],
    "pip": False,
    "code": ["/srv/mrc/code/1", True],
    "packages": ["/srv/mrc/packages/2", False],
    "wheels": {"a.whl": "00"},
}
PORT = Listening("udp", "10.0.0.1", 40_000)


def findings(**other: Any) -> HostFacts:
    return HostFacts("h1", "python3", GOOD | other)


def test_a_good_host_is_not_complained_of() -> None:
    good = findings()
    good.check([PORT])
    assert good.run_dir == "/srv/mrc"
    assert good.missing == ["numpy>=1.26"]
    assert not good.has_pip
    assert good.code == ("/srv/mrc/code/1", True)
    assert good.packages == ("/srv/mrc/packages/2", False)
    assert good.wheels == {"a.whl": "00"}


@pytest.mark.parametrize(
    ("other", "line"),
    [
        ({"python": [3, 9, 18]}, "host h1: `python3` is Python 3.9.18, and it takes 3.11 or newer (install one "),
        ({"python": [2, 7, 18]}, "host h1: `python3` is Python 2.7.18, and it takes 3.11 or newer ("),
        ({"unwritable": "No space left on device"}, "host h1: mrc cannot write into /srv/mrc: No space left on dev"),
        ({"ports": ["EADDRINUSE"]}, "host h1: UDP port 40000 of 10.0.0.1 is taken (end who listens there "),
        ({"ports": ["EADDRNOTAVAIL"]}, "host h1: has no address 10.0.0.1 (name one that `ip addr` shows there)"),
        ({"ports": ["EACCES"]}, "host h1: UDP port 40000 of 10.0.0.1 is not for mrc (choose one above 1023)"),
        ({"ports": ["EMFILE"]}, "host h1: UDP port 40000 of 10.0.0.1 cannot be had: EMFILE"),
    ],
)
def test_what_will_not_do_is_one_line(other: dict[str, Any], line: str) -> None:
    with pytest.raises(ConfigError) as told:
        findings(**other).check([PORT])
    assert str(told.value).startswith(line)
    assert "\n" not in str(told.value)


def test_an_installation_is_of_our_version() -> None:
    findings(installed="0.1.0").check_version("0.1.0")
    with pytest.raises(ConfigError, match=r"has mrcfabric 0\.0\.9, and this is 0\.1\.0 \(install this"):
        findings(installed="0.0.9").check_version("0.1.0")
    with pytest.raises(ConfigError, match=r"has no mrcfabric, and this is 0\.1\.0"):
        findings().check_version("0.1.0")
