"""The names in links are those of boards that there are."""

from tools.grafana import uids
from tools.grafana.catalogue import BOARDS


def test_every_name_is_a_board() -> None:
    names = {value for name, value in vars(uids).items() if name.isupper()}
    assert names == {board.uid for board in BOARDS}
