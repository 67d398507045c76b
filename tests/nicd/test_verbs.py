"""The blocking form of the host API against a served NIC."""

import asyncio
from pathlib import Path

import pytest

from nicd.verbs import Device, VerbsError
from tests.support.verbs_bench import verbs_bench

pytestmark = pytest.mark.integration


def blocking_conversation(folder: Path) -> list[str]:
    with Device.open(str(folder / "h000")) as one, Device.open(str(folder / "h001")) as two:
        a, b = one.create_qp(), two.create_qp()
        source, sink = one.reg_mr(100), two.reg_mr(100)
        one.connect(a, b.local)
        two.connect(b, a.local)
        one.post_write(a, source, 0, 4, (sink.va, sink.r_key), wr_id=5)
        outcome = [one.poll_cq(timeout_s=10)[0].detail]
        one.start(a)
        source.buffer[:4] = b"data"
        one.post_write_imm(a, source, 0, 4, (sink.va, sink.r_key), imm=3)
        outcome += [cqe.status for cqe in one.poll_cq(timeout_s=10) + two.poll_cq(timeout_s=10)]
        outcome.append(bytes(sink.buffer[:4]).decode())
        outcome.append(f"{one.poll_cq()} {one.poll_cq(timeout_s=0.001)}")
        one.dereg_mr(source)
        one.destroy_qp(a)
        for call in (lambda: one.destroy_qp(a), lambda: one.dereg_mr(source), lambda: one.reg_mr(0)):
            try:
                call()
            except VerbsError as error:
                outcome.append(str(error))
    return outcome


async def test_the_blocking_form_does_the_same(tmp_path: Path) -> None:
    async with verbs_bench(tmp_path):
        outcome = await asyncio.to_thread(blocking_conversation, tmp_path)
    assert outcome[0].endswith("is in state rtr, not rts")
    assert outcome[1:5] == ["ok", "ok", "data", "[] []"]
    assert [text.split(" ")[-2:] for text in outcome[5:7]] == [["QP", "17"], ["region", "18"]]
    assert outcome[7] == "a region of 0 bytes cannot be registered (1 to 4294967295)"
