"""Names end when they have not been read, and only then."""

from mrcfabric.unread import Unread
from tests.support.wait import eventually


async def test_what_nobody_reads_ends() -> None:
    ended: list[str] = []
    unread = Unread(ended.append, unread_s=0.0)
    unread.read("a")
    unread.read("b")
    await eventually(lambda: sorted(ended) == ["a", "b"], deadline_s=20)
    unread.read("a")
    await eventually(lambda: len(ended) == 3, deadline_s=20)


async def test_what_is_forgotten_does_not_end() -> None:
    ended: list[str] = []
    unread = Unread(ended.append, unread_s=0.0)
    unread.read("a")
    unread.read("b")
    unread.forget("a")
    await eventually(lambda: ended == ["b"], deadline_s=20)
    unread.read("c")
    unread.close()
    unread.close()
    assert ended == ["b"]
