"""One posted WRITE of an RC QP: its PSNs, and where it stands among all bytes of the QP."""

from nicd.core.commands import PostWrite
from nicd.core.memory import Region
from nicd.core.message import Message


class Posted(Message):
    """One posted WRITE of an RC QP."""

    __slots__ = ("base",)

    def __init__(self, work: PostWrite, region: Region, view: memoryview, number: int, psn: int, base: int) -> None:
        super().__init__(work, region, view, number, 0)
        self.psn_first = psn
        self.base = base
        """Bytes that the QP was given before this message."""
