"""The asyncio form of the host API against a served NIC."""

from pathlib import Path

import pytest

from nicd.verbs import AsyncDevice
from tests.support.verbs_bench import completions, connected, verbs_bench

pytestmark = pytest.mark.integration


async def test_a_write_lands_in_the_peers_memory_and_both_learn_of_it(tmp_path: Path) -> None:
    async with (
        verbs_bench(tmp_path),
        await AsyncDevice.open(str(tmp_path / "h000")) as one,
        await AsyncDevice.open(str(tmp_path / "h001")) as two,
    ):
        assert (one.info.node, two.info.nic_index) == ("h000", 1)
        a, b = await connected(one, two)
        source, sink = await one.reg_mr(8192), await two.reg_mr(4096, va=1 << 40)
        assert sink.va == 1 << 40
        source.buffer[100:110] = b"0123456789"
        one.post_write(a, source, 100, 5, (sink.va + 8, sink.r_key), wr_id=1)
        one.post_write_imm(a, source, 105, 5, (sink.va + 20, sink.r_key), wr_id=2, imm=99)
        sent = [cqe async for cqe in completions(one, 2)]
        (received,) = [cqe async for cqe in completions(two, 1)]
        assert [(cqe.wr_id, cqe.status, cqe.opcode) for cqe in sent] == [
            (1, "ok", "write"),
            (2, "ok", "write_with_imm"),
        ]
        assert (received.qpn, received.opcode, received.byte_len, received.imm) == (b.qpn, "recv_with_imm", 5, 99)
        assert sent[0].posted_ns <= sent[0].at_ns < sent[1].at_ns
        assert bytes(sink.buffer[8:13]) == b"01234"
        assert bytes(sink.buffer[20:25]) == b"56789"
