"""Wire options refuse what makes no sense."""

from typing import Any

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.wire.options import DEFAULT_OPTIONS, WireOptions


@pytest.mark.spec("MRC 1.0", "7.5.5.2")
def test_the_default_sends_the_registered_port_and_takes_the_printed_one() -> None:
    assert DEFAULT_OPTIONS.udp_port == 4791
    assert DEFAULT_OPTIONS.udp_ports_accepted == (4791, 4971)


@pytest.mark.parametrize(
    "bad",
    [
        {"udp_port": 0},
        {"udp_port": 1234},
        {"eeth_op_shift": 1},
        {"eeth_op_shift": 3},
        {"eeth_op_shift": 6},
        {"nack_cc_type": 16},
        {"p_key": 0x10000},
        {"hop_limit": 0},
    ],
)
def test_a_wrong_option_names_itself(bad: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"^wire\."):
        WireOptions(**bad)
