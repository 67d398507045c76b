"""The digest of what a node did."""

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.node import Transmit
from mrcfabric.sim.trace import Trace


class Note:
    def __init__(self, at_ns: int, text: str) -> None:
        self.at_ns = at_ns
        self.text = text

    def record(self) -> dict[str, Any]:
        return {"at_ns": self.at_ns, "kind": "note", "text": self.text}


def digest(*batches: tuple[list[Transmit], list[Note]]) -> str:
    trace = Trace()
    for transmits, events in batches:
        trace.add(transmits, events)
    return trace.digest()


SENT = [(port, at_ns, bytes([port, at_ns])) for at_ns in range(4) for port in range(3)]


@given(st.lists(st.integers(0, len(SENT)), max_size=4), st.permutations(range(3)))
def test_neither_cuts_nor_the_order_across_ports_matter(cuts, ports):
    edges = sorted({0, *cuts, len(SENT)})
    parts = [SENT[a:b] for a, b in pairwise(edges)]
    shuffled = [(sorted(part, key=lambda sent: ports[sent[0]]), []) for part in parts]
    assert digest(*shuffled) == digest((SENT, []))


def test_any_difference_shows():
    base = [(0, 10, b"ab"), (0, 20, b"c")]
    variants = [
        [],
        base[:1],
        base[::-1],
        [(1, 10, b"ab"), (0, 20, b"c")],
        [(0, 11, b"ab"), (0, 20, b"c")],
        [(0, 10, b"ax"), (0, 20, b"c")],
        [(0, 10, b"a"), (0, 20, b"bc")],
    ]
    digests = [digest((sent, [])) for sent in [base, *variants]]
    digests += [digest((base, [Note(1, "x")])), digest((base, [Note(1, "y")])), digest((base, [Note(2, "x")]))]
    assert len(set(digests)) == len(digests)


def test_the_summary_tells_where():
    one, other = Trace(), Trace()
    one.add([(0, 1, b"a"), (7, 1, b"b")], [Note(1, "x")])
    other.add([(0, 1, b"a"), (7, 1, b"c")], [Note(1, "x")])
    mine, theirs = one.summary(), other.summary()
    assert mine["ports"]["0"] == theirs["ports"]["0"]
    assert mine["ports"]["7"] != theirs["ports"]["7"]
    assert mine["events"] == theirs["events"]
    assert mine["events"][0] == 1


def test_what_is_remembered_is_a_bounded_copy():
    trace = Trace(keep=2)
    packet = bytearray(b"abc")
    trace.add([(0, 1, b"gone"), (0, 2, packet), (1, 3, b"z")], [])
    packet[0] = 0
    assert list(trace.sent) == [(0, 2, b"abc"), (1, 3, b"z")]
