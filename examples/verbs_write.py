"""Two applications in one script: one writes into the other's memory, across a running fabric.

mrcfabric up --detach
python examples/verbs_write.py [RUN_DIR [NIC [NIC]]]     out/demo, h000, h003
"""

import sys
from pathlib import Path

from nicd.verbs import Device

MESSAGE = b"every packet of this went over another path. " * 20_000


def main(run_folder: str = "out/demo", source: str = "h000", target: str = "h003") -> None:
    sockets = Path(run_folder) / "verbs"
    if not sockets.is_dir():
        sys.exit(f"{run_folder}: no fabric runs there; start one with `mrcfabric up --detach`")
    with Device.open(str(sockets / f"{source}.sock")) as near, Device.open(str(sockets / f"{target}.sock")) as far:
        outgoing, incoming = near.reg_mr(len(MESSAGE)), far.reg_mr(len(MESSAGE))
        outgoing.buffer[:] = MESSAGE

        # Connection data travel out of band; here both ends happen to be in one process.
        near_qp, far_qp = near.create_qp(), far.create_qp()
        near.connect(near_qp, far_qp.local)
        far.connect(far_qp, near_qp.local)
        near.start(near_qp)
        far.start(far_qp)

        near.post_write_imm(near_qp, outgoing, 0, len(MESSAGE), (incoming.va, incoming.r_key), imm=7, wr_id=1)
        [received] = far.poll_cq(timeout_s=30)
        [sent] = near.poll_cq(timeout_s=30)

        assert received.imm == 7
        assert bytes(incoming.buffer) == MESSAGE
        took_ns = sent.at_ns - sent.posted_ns
        print(f"{len(MESSAGE)} bytes in {took_ns / 1000:.1f} us of fabric time, {8 * len(MESSAGE) / took_ns:.0f} Gb/s")


if __name__ == "__main__":
    main(*sys.argv[1:])
