"""UPDATE: a vector by hand, written and read, many prefixes, errors, any bytes, and what a stock tshark reads."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.prefix import Prefix, prefix_of
from mrcfabric.wire import bfd, bgp, bgp_update, pcapng_writer, tcp
from mrcfabric.wire.bgp import BgpError, Notification, Open
from mrcfabric.wire.bgp_update import Attributes, Update
from tests.support.tshark import fields

HOP = bytes.fromhex("fe80" + "00" * 13 + "01")
PATH = (4_200_000_000, 65_001)
PREFIXES = st.builds(prefix_of, st.integers(0, (1 << 128) - 1), st.integers(0, 128))


def read(messages: Iterable[bytes]) -> list[Update]:
    found = []
    for message in messages:
        stream = bytearray(message)
        taken = bgp.take(stream)
        assert taken is not None
        assert taken[0] == bgp.UPDATE
        assert not stream
        found.append(bgp_update.parse(taken[1]))
    return found


def test_an_announcement_by_hand() -> None:
    rack = Prefix(0xFD6D << 112 | 8, 125)
    (message,) = bgp_update.announcements(Attributes(PATH, HOP, communities=(bgp_update.GRACEFUL_SHUTDOWN,)), [rack])
    reach = "800e2600020110" + HOP.hex() + "007dfd6d" + "00" * 13 + "08"
    rest = "4001010040020a0202fa56ea000000fde9c00804ffff0000"
    size = len(reach + rest) // 2
    assert message[19:].hex() == "0000" + f"{size:04x}" + reach + rest
    assert read([message]) == [Update((rack,), Attributes(PATH, HOP, 0, (0xFFFF0000,)))]


def test_a_withdrawal_and_the_end_of_a_table_by_hand() -> None:
    (message,) = bgp_update.withdrawals([Prefix(0xFD6D << 112, 16)])
    assert message[19:].hex() == "00000009800f0600020110fd6d"
    assert read([message]) == [Update(unreach=(Prefix(0xFD6D << 112, 16),))]
    assert bgp_update.end_of_rib()[19:].hex() == "00000006800f03000201"
    assert read([bgp_update.end_of_rib()]) == [Update(end_of_rib=True)]
    # The end of IPv4's table says nothing here.
    assert bgp_update.parse(bytes(4)) == Update()


@given(st.lists(PREFIXES, unique=True, max_size=30), st.lists(st.integers(1, 0xFFFF_FFFF), max_size=300), st.data())
def test_prefixes_and_attributes_are_read_as_they_were_written(
    prefixes: list[Prefix], path: list[int], data: st.DataObject
) -> None:
    communities = tuple(data.draw(st.lists(st.integers(0, 0xFFFF_FFFF), max_size=4)))
    attributes = Attributes(tuple(path), HOP, data.draw(st.integers(0, 2)), communities)
    found = read(bgp_update.announcements(attributes, prefixes))
    assert [prefix for update in found for prefix in update.reach] == prefixes
    assert all(update.attributes == attributes for update in found)
    found = read(bgp_update.withdrawals(prefixes))
    assert [prefix for update in found for prefix in update.unreach] == prefixes


@pytest.mark.parametrize("count", [1, 236, 237, 238, 239, 240, 241, 1_000, 5_000])
def test_no_message_is_too_long_and_none_could_hold_more(count: int) -> None:
    prefixes = [Prefix(number << 8, 128) for number in range(count)]
    for messages in (bgp_update.announcements(Attributes(PATH, HOP), prefixes), bgp_update.withdrawals(prefixes)):
        sizes = [len(message) for message in messages]
        assert max(sizes) <= bgp.MESSAGE_MAX
        assert all(size > bgp.MESSAGE_MAX - 17 for size in sizes[:-1])


def test_two_next_hops_and_unknown_attributes() -> None:
    reach = "800e" + f"{5 + 32 + 1:02x}" + "00020120" + "20" * 16 + HOP.hex() + "0000"
    rest = "40010100400200c020020102"
    body = bytes.fromhex("0000" + f"{len(reach + rest) // 2:04x}" + reach + rest)
    assert bgp_update.parse(body) == Update((Prefix(0, 0),), Attributes((), HOP))


REACH = "800e1600020110" + HOP.hex() + "0000"


def body(attributes: str, behind: str = "", withdrawn: str = "") -> bytes:
    head = f"{len(withdrawn) // 2:04x}" + withdrawn + f"{len(attributes) // 2:04x}"
    return bytes.fromhex(head + attributes + behind)


@pytest.mark.parametrize(
    ("data", "subcode"),
    [
        (b"", 1),
        (bytes.fromhex("0000ffff"), 1),
        (bytes.fromhex("00050000"), 1),
        (body("", "180a0000"), 10),
        (body("", "", "180a0000"), 10),
        (body("400101"), 5),
        (body("4001"), 5),
        (body("4001010040010100"), 1),
        (body("c0010100"), 4),
        (body(REACH + "40010100"), 3),
        (body(REACH + "400200"), 3),
        (body(REACH + "40010103400200"), 6),
        (body(REACH + "40010100400206010100000001"), 11),
        (body(REACH + "400101004002020200"), 11),
        (body(REACH + "400101004002020201"), 11),
        (body(REACH + "40010100400200c00803010203"), 9),
        (body("800f03000101"), 9),
        (body("800f0400020181"), 10),
        (body("800f0500020120fd"), 10),
        (body("800e06000201040000"), 9),
        (body("800e03000201"), 9),
    ],
)
def test_updates_that_break_the_protocol(data: bytes, subcode: int) -> None:
    with pytest.raises(BgpError) as caught:
        bgp_update.parse(data)
    assert (caught.value.code, caught.value.subcode) == (bgp.BAD_UPDATE, subcode)


@given(st.binary(max_size=80), st.integers(0, 400), st.integers(0, 255))
def test_any_bytes_raise_the_wires_error_or_none(data: bytes, at: int, value: int) -> None:
    good = bytearray(next(bgp_update.announcements(Attributes(PATH, HOP), [Prefix(5 << 64, 64)]))[19:])
    good[at % len(good)] = value
    for hostile in (data, bytes(good), bytes(good[: at % len(good)])):
        with suppress(BgpError):
            bgp_update.parse(hostile)


@pytest.mark.integration
def test_tshark_reads_the_same(tmp_path: Path) -> None:
    here, there = HOP, HOP[:-1] + b"\x02"
    rack = prefix_of(0xFD6D_7263_6661_6272 << 64 | 8, 125)
    messages = [
        bgp.encode_open(Open(4_200_000_000, 9, 0x0A000001)),
        bgp.frame(bgp.KEEPALIVE),
        *bgp_update.announcements(Attributes(PATH, HOP, communities=(bgp_update.GRACEFUL_SHUTDOWN,)), [rack]),
        *bgp_update.withdrawals([rack]),
        bgp.encode_notification(Notification(bgp.CEASE, bgp.CEASE_BFD_DOWN)),
    ]
    packets, sequence = [tcp.encode(here, there, tcp.Segment(49_152, 179, 99, 0, tcp.SYN, mss=1_220), 1)], 100
    for message in messages:
        segment = tcp.Segment(49_152, 179, sequence, 7, tcp.PSH | tcp.ACK, payload=message)
        packets.append(tcp.encode(here, there, segment, 1))
        sequence += len(message)
    packets.append(bfd.encode(here, there, 49_152, bfd.Bfd(bfd.UP, 3, 1, 2, 300_000, 300_000, poll=True)))
    out = pcapng_writer.section("x") + pcapng_writer.interface("a>b")
    out += b"".join(pcapng_writer.packet(0, 1_000 * at, one, len(one)) for at, one in enumerate(packets))
    file = tmp_path / "x.pcapng"
    file.write_bytes(out)
    names = (
        "bgp.type", "bgp.open.holdtime", "bgp.cap.4as", "bgp.update.path_attribute.as_path_segment.as4",
        "bgp.mp_reach_nlri_ipv6_prefix", "bgp.mp_unreach_nlri_ipv6_prefix", "bgp.notify.major_error",
        "bgp.notify.minor_error_cease", "bfd.sta", "bfd.desired_min_tx_interval", "tcp.options.mss_val",
        "_ws.malformed", "tcp.checksum.status", "udp.checksum.status",
    )  # fmt: skip
    sums = ("-o", "tcp.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE")
    rows = fields(file, names, *sums, scripts=())
    assert [row["bgp.type"] for row in rows] == [[], ["1"], ["4"], ["2"], ["2"], ["3"], []]
    assert not any(row["_ws.malformed"] for row in rows)
    assert all(row["tcp.checksum.status"] == ["1"] for row in rows[:-1])
    assert rows[-1]["udp.checksum.status"] == ["1"]
    assert rows[0]["tcp.options.mss_val"] == ["1220"]
    assert (rows[1]["bgp.open.holdtime"], rows[1]["bgp.cap.4as"]) == (["9"], ["4200000000"])
    assert rows[3]["bgp.update.path_attribute.as_path_segment.as4"] == ["4200000000", "65001"]
    assert rows[3]["bgp.mp_reach_nlri_ipv6_prefix"] == ["fd6d:7263:6661:6272::8"]
    assert rows[4]["bgp.mp_unreach_nlri_ipv6_prefix"] == ["fd6d:7263:6661:6272::8"]
    assert (rows[5]["bgp.notify.major_error"], rows[5]["bgp.notify.minor_error_cease"]) == (["6"], ["10"])
    assert rows[6]["bfd.sta"] in (["3"], ["0x03"])
    assert int(rows[6]["bfd.desired_min_tx_interval"][0]) in (300, 300_000)
