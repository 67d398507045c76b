"""Which NIC has which LIDs."""

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.lids import base_lid, check_lids, nic_of


@pytest.mark.parametrize("lmc", range(8))
def test_each_port_has_lids_in_a_row_and_they_lead_back_to_it(lmc: int) -> None:
    for nic in (0, 1, 5, 300):
        first = base_lid(nic, lmc)
        assert first % (1 << lmc) == 0
        assert [nic_of(first + bits, lmc) for bits in range(1 << lmc)] == [nic] * (1 << lmc)
    assert nic_of(0, lmc) == -1


@pytest.mark.parametrize(("lmc", "most"), [(0, 49_151), (1, 24_575), (7, 383)])
def test_a_subnet_has_so_many_ports(lmc: int, most: int) -> None:
    check_lids(most, lmc)
    assert base_lid(most - 1, lmc) + (1 << lmc) - 1 <= 0xBFFF
    with pytest.raises(ConfigError, match=f"LIDs for {most}"):
        check_lids(most + 1, lmc)
    with pytest.raises(ConfigError, match="0 to 7"):
        check_lids(1, 8)
