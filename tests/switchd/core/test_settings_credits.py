"""Service levels and their VLs."""

import pytest

from mrcfabric.errors import ConfigError
from switchd.core.settings_credits import CreditConfig


@pytest.mark.parametrize("sl2vl", [(0,) * 15, (16,) + (0,) * 15, (-1,) + (0,) * 15])
def test_what_will_not_do(sl2vl: tuple[int, ...]) -> None:
    with pytest.raises(ConfigError, match="sl2vl"):
        CreditConfig(sl2vl)
    assert CreditConfig().sl2vl == (0,) * 16
