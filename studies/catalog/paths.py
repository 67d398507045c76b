"""Loss and EVs: random loss, one bad EV among sixteen, few EVs against many."""

from itertools import product

from studies import columns
from studies.fabrics import OBLIVIOUS, ONE_PATH, eight_by_100, four_by_100
from studies.faults import LinkFault, LossyEv, RandomLoss
from studies.flows import START_NS, Flow, permutation, ring
from studies.study import Departure, More, NoLess, Reaches, Study
from studies.trial import Trial

MIB = 1 << 20


def _random_loss(seed: str) -> dict[str, Trial]:
    trials = {}
    for name, nic, qps in (("MRC", {}, 1), ("oblivious", OBLIVIOUS, 1), ("one path, 4 QPs", ONE_PATH, 4)):
        for loss_ppm in (0, 1_000, 10_000):
            topology = four_by_100(seed, nic=nic)
            faults = (RandomLoss(loss_ppm),) if loss_ppm else ()
            flows = permutation(topology, 4 * MIB, messages=7, qps=qps, below=2)
            window_ns = (START_NS + 150_000, START_NS + 350_000)
            trials[f"{name}, {loss_ppm / 10_000:g} %"] = Trial(topology, flows, faults, window_ns=window_ns)
    return trials


LOSS_WHY = (
    "Nothing of this fabric stops for one lost packet: its neighbours' acknowledgements give it away after about "
    "two base RTTs and it is sent again while the window keeps moving, so that 1 % of loss costs a few per cent. "
    "The published figure is a ring all-reduce of 64 GPUs on one vendor's NIC, where every step waits for the last "
    "packet of the step before, and includes whatever that NIC does on loss; neither is public in detail."
)
LOSS = Study(
    name="random_loss",
    title="Random loss everywhere",
    published="0.1 % has little effect on large messages; at 1 % MRC falls to about a third, RoCE is unusable (arXiv "
    "2605.04333, figure 16).",
    setup="4 planes of 100 Gb/s, 2 T0s and 4 T1s each, four flows with always something to send; every packet and "
    "every acknowledgement is lost at the T1 with the same chance. Rates between 150 and 350 us.",
    trials=_random_loss,
    columns=(
        columns.mean_share(),
        columns.least_share(),
        columns.LOST,
        columns.NEEDLESS,
        columns.RETIRED,
        columns.TIMEOUTS,
        columns.ERRORS,
    ),
    claims=(
        Reaches(
            "0.1 % has little effect: at least 0.95 of the rate without.",
            "mean share",
            "MRC, 0.1 %",
            0.95,
            of="MRC, 0 %",
        ),
        More("1 % costs more than 0.1 %.", "mean share", "MRC, 0.1 %", "MRC, 1 %"),
        Departure(
            Reaches("At 1 % about a third is left.", "mean share", "MRC, 1 %", 0.25, of="MRC, 0 %", most=0.45),
            LOSS_WHY,
        ),
        More("No QP fails, and MRC stays above one path.", "mean share", "MRC, 1 %", "one path, 4 QPs, 1 %"),
    ),
    seeds=3,
    pictured="mean share",
)


def _ring(seed: str) -> dict[str, Trial]:
    trials = {}
    for name, nic, sizes in (("MRC", {}, (MIB // 4, MIB)), ("one path", ONE_PATH, (MIB,))):
        for size, loss_ppm in product(sizes, (0, 1_000, 10_000)):
            topology = four_by_100(seed, nic=nic)
            faults = (RandomLoss(loss_ppm),) if loss_ppm else ()
            trials[f"{name}, {size >> 10} KiB, {loss_ppm / 10_000:g} %"] = Trial(
                topology, ring(topology, size), faults, deadline_ns=START_NS + 20_000_000
            )
    return trials


RING = Study(
    name="ring",
    title="Random loss under a ring all-reduce",
    published="0.1 % has little effect on large messages; at 1 % MRC falls to about a third of its rate without loss "
    "(arXiv 2605.04333, figure 16: 64 GPUs, 4 x 100 Gb/s).",
    setup="4 planes of 100 Gb/s, 2 T0s of 4 NICs and 4 T1s each; a ring of 8 NICs, 14 steps of 256 KiB or 1 MiB, each "
    "of which waits for the step before. Loss as in the study before. Seen from the application: payload over time.",
    trials=_ring,
    columns=(
        columns.DONE_US,
        columns.mean_share(),
        columns.LOST,
        columns.TIMEOUTS,
        columns.NEEDLESS,
        columns.RETIRED,
        columns.ERRORS,
    ),
    claims=(
        More("0.1 % costs less than 1 %.", "mean share", "MRC, 1024 KiB, 0.1 %", "MRC, 1024 KiB, 1 %"),
        Reaches(
            "At 1 % a good half is left where steps are short, more than the published third.",
            "mean share",
            "MRC, 256 KiB, 1 %",
            0.5,
            of="MRC, 256 KiB, 0 %",
            most=0.75,
        ),
        More("MRC stays above one path.", "mean share", "MRC, 1024 KiB, 1 %", "one path, 1024 KiB, 1 %"),
    ),
    limits="How much is left depends on the length of a step. 256 KiB is that of 16 MB over 64 GPUs, near the lower "
    "end of the published sizes. A lost packet is found some two base RTTs after it was sent, by the order of packets "
    "on its path (by time alone after three to four, and then two fifths are left); the longer the step, the less "
    "that weighs, and steps of 256 MB, the largest published ones, would hardly notice it. What the "
    "published NIC loses with those is not explained in public; that 0.1 % has little effect on large messages "
    "cannot be seen in such steps.",
    pictured="mean share",
    seeds=3,
)


def _one_ev(seed: str) -> dict[str, Trial]:
    at_ns = START_NS + 100_000
    trials = {}
    for name, nic, reserve, loss_ppm in (
        ("MRC, no loss", {}, 16, 0),
        ("MRC", {}, 16, 200_000),
        ("MRC, no reserve", {}, 0, 200_000),
        ("oblivious", OBLIVIOUS, 16, 200_000),
    ):
        topology = eight_by_100(seed, nic=nic, evs_per_qp=16, reserve_evs_per_qp=reserve)
        faults = (LossyEv(0, 0, loss_ppm, at_ns),) if loss_ppm else ()
        flows = (Flow(0, topology.nics_per_t0, 8 * MIB, 6),)
        window_ns = (at_ns, at_ns + 250_000)
        trials[name] = Trial(topology, flows, faults, window_ns=window_ns, fault_ns=at_ns, sample_ns=5_000)
    return trials


ONE_EV = Study(
    name="one_bad_ev",
    title="One EV drops a fifth of its packets",
    published="Of 16 EVs (2 per plane) the bad one is taken out at once, a reserve EV of the same plane comes in, "
    "and the rate is kept (arXiv 2605.04333, figures 12 and 13).",
    setup="8 planes of 100 Gb/s, one flow, 16 active EVs; from 100 us on the path of one of them loses 20 %. Rates "
    "over the 250 us that follow.",
    trials=_one_ev,
    columns=(
        columns.sum_share(),
        columns.REACTION,
        columns.RETIRED,
        columns.count("replaced", lambda outcome: outcome.nics["ev_replacements"]),
        columns.LOST,
        columns.NEEDLESS,
        columns.GAP,
    ),
    claims=(
        Reaches("The rate is kept.", "share", "MRC", 0.97, of="MRC, no loss"),
        Reaches("The EV is out within a few base RTTs.", "first EV retired after, base RTT", "MRC", 0.0, most=6.0),
        More("Oblivious spraying goes on losing packets.", "lost", "oblivious", "MRC"),
    ),
    pictured="share",
)


def _ev_count(seed: str) -> dict[str, Trial]:
    trials = {}
    for evs in (16, 64, 128, 256):
        topology = four_by_100(seed, evs_per_qp=evs, reserve_evs_per_qp=evs // 4, t1_per_plane=8, nics_per_t0=8)
        flows = permutation(topology, 4 * MIB, messages=3)
        window_ns = (START_NS + 60_000, START_NS + 130_000)
        trials[f"{evs} EVs"] = Trial(topology, flows, window_ns=window_ns)
        lossy = (LinkFault("p0-t0-0~p0-t1-0", START_NS + 20_000),)
        trials[f"{evs} EVs, a link cut"] = Trial(topology, flows, lossy, window_ns=window_ns)
    return trials


EV_COUNT = Study(
    name="ev_count",
    title="Few EVs against many",
    published="128 to 256 EVs per QP; about one or two windows of packets are enough, with little gain past a "
    "hundred (MRC 1.0 as digested; arXiv 2605.04333 uses 16 for micro-benchmarks, more than 100 in production).",
    setup="4 planes of 100 Gb/s, 2 T0s of 8 NICs and 8 T1s each, a permutation of 16 NICs, a quarter as many EVs in "
    "reserve; healthy, and with one T0-T1 link cut. Rates between 60 and 130 us.",
    trials=_ev_count,
    columns=(
        columns.mean_share(),
        columns.least_share(),
        columns.MARKED,
        columns.TRIMS,
        columns.LOST,
        columns.RETIRED,
        columns.RTT,
    ),
    claims=(
        NoLess("256 gain nothing over 128.", "mean share", "128 EVs", "256 EVs"),
        NoLess("128 are no worse than 16.", "mean share", "128 EVs", "16 EVs"),
    ),
    limits="A plane has 8 paths here and not 256, so sixteen EVs (four per plane) reach half of them. What many EVs "
    "buy in a large fabric, an even choice among hundreds of T1s, is larger than what can be seen here.",
    seeds=3,
)

STUDIES = (LOSS, RING, ONE_EV, EV_COUNT)
