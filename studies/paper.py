"""The experiments of docs/PAPER.md: which scenario of examples/paper stands beside which published figure.

Owns the rows and what they say; `docs/generate_paper.py` runs them and writes the page.
"""

from typing import Final, NamedTuple


class Experiment(NamedTuple):
    """One row: what was published, and which findings of which scenario stand beside it."""

    source: str
    published: str
    scenario: str
    shown: tuple[str, ...]
    """Names of expectations whose observed values are shown."""
    remark: str = ""
    larger: tuple[tuple[str, str], ...] = (("fabric.t1_per_plane", "8"),)
    """What the second size changes."""
    roce: bool = False
    """About RoCE: the same scenario then is run with MRC, not with oblivious spraying."""
    held: bool = True
    """Of a row about MRC: whether the file's expectations hold as it stands; the remark says why not."""
    mrc: tuple[tuple[str, str], ...] = ()
    """What makes MRC of it; empty: another row shows MRC there."""


MRC: Final = (("system", "mrc"),)
_BOTH_LARGER: Final = (
    ("fabric.nics_per_t0", "8"),
    ("fabric.t1_per_plane", "8"),
    ("workload.work.ranks", f"[{', '.join(f'h{nic:03}, h{nic + 8:03}' for nic in range(8))}]"),
)
"""Twice as many NICs below each T0, as many up-links, and a ring of all of them."""

EXPERIMENTS: Final = (
    Experiment(
        "figure 4",
        "75,000 GPUs, no deny list: fewer than 5 packets lost per QP in the first minute, then below 1 per second and "
        "NIC",
        "start-with-dead-links",
        (
            "packets lost in the first second",
            "packets lost in the ten seconds from the second one",
            "of the capacity left from 2s to 15s",
        ),
        "Eight of 64 T0-T1 links are dead, one in eight; in the paper few of very many. Losses end as EVs are retired. "
        "With seed 1 two planes keep one T1 for two NICs, an eighth of all capacity is gone.",
    ),
    Experiment(
        "figure 5, OpenAI",
        "up to 14 flaps a minute of T0-T1 links over 250 minutes: no measurable effect on steps",
        "background-flaps",
        ("the median step takes no longer", "the mean step takes little longer"),
        "A flap costs a synchronous job some round trips. Their steps take seconds, ours a few round trips, so the "
        "few steps that a flap meets are seen in the mean.",
    ),
    Experiment(
        "figures 6 and 7",
        "a transceiver with four NIC-T0 links flaps: throughput -25 % for about a minute, full recovery, no QP lost",
        "transceiver-flap",
        ("a dip", "step_time after optic", "qp_errors"),
        "The dip is the share of ports lost: four of eight here.",
    ),
    Experiment(
        "figure 8, OpenAI",
        "a T1 stops forwarding: a quarter of QPs touched, normal soon; its reboot is not seen",
        "t1-down-and-reboot",
        ("goodput during freeze", "the reboot is not seen", "packets_lost during reboot"),
    ),
    Experiment(
        "figure 8, OpenAI",
        "four T1s rebooted in a job, unannounced",
        "four-t1s-reboot",
        ("the median step takes little longer", "step_time after reboots", "qp_errors"),
        "The median step takes 2 to 11 % longer here, and nothing was seen there: a step of ours is some 20 round "
        "trips, and each that meets a dead T1 waits for what was lost. The bar of 10 % is ours.",
        (("fabric.nics_per_t0", "4"),),
    ),
    Experiment(
        "figure 9a",
        "NIC-T0 links down one by one: steps in proportion to the links left",
        "nic-links-one-by-one",
        ("7 of 8 links", "6 of 8 links", "4 of 8 links", "2 of 8 links", "1 of 8 links"),
    ),
    Experiment(
        "figure 9b",
        "four of eight NIC links lost for 12 s: about half, then full again",
        "four-ports-flap",
        ("goodput of h000 during ports", "goodput of h000 after ports"),
    ),
    Experiment(
        "figure 9c",
        "20 T0-T1 links down, one a second: almost nothing at a resolution of 200 ms",
        "twenty-t1-links",
        ("mean over all outages", "bins of one second", "bins of 200 ms", "with all twenty lost"),
        "A second of the timetable is 15 base RTTs here and 100,000 there: a loss of two round trips fills most "
        "of our bin of 200 ms and a fifty-thousandth of theirs.",
        (("fabric.t1_per_plane", "10"),),
    ),
    Experiment(
        "figure 9d",
        "eight T0-T1 links flap together: negligible",
        "eight-links-flap",
        (
            "of the capacity left over the flaps",
            "of the capacity left while the links are down",
            "back after they have come back",
        ),
        "As for figure 9c: the whole holds two losses of a few round trips each in 88 round trips. With seed 3 four of "
        "the links are of one plane, which keeps one T1 for two NICs: a sixteenth of all capacity is gone.",
    ),
    Experiment(
        "figure 10",
        "a T0 down: 700 of 800 Gb/s for as long as it lasts",
        "t0-down",
        ("goodput during t0", "goodput after t0"),
    ),
    Experiment(
        "figures 12 and 13",
        "one EV at 20 % drop, 16 EVs: it is inactive at once, a reserve EV of the plane is on, line rate kept",
        "lossy-ev",
        ("line rate is kept", "detection_rtts during lossy", "one EV of the reserve took its place"),
        "The lossy path is one that an EV in use takes, with every seed. The EV in reserve is one of the same plane.",
    ),
    Experiment(
        "figure 16",
        "ring all-reduce: many EVs beat few paths by far",
        "ring-all-reduce-with-many-evs",
        ("goodput",),
        "Share of line rate; with one EV per plane below.",
    ),
    Experiment("figure 16", "RoCE with one QP: about half of MRC", "ring-all-reduce-with-few-evs", ("goodput",)),
    Experiment(
        "figure 16",
        "random loss of 0.1 %: little effect on large messages",
        "random-loss-01",
        ("goodput during loss",),
    ),
    Experiment(
        "figure 16",
        "random loss of 1 %: falls to about a third",
        "random-loss-1",
        ("goodput during loss",),
        "Eight buckets are under way at once here, and a loss holds up one of them. No setting tried shows both "
        "published figures: what makes 1 % cost two thirds makes 0.1 % cost a quarter.",
    ),
    Experiment(
        "figure 16",
        "random loss of 1 %: falls to about a third",
        "random-loss-1-one-bucket",
        ("goodput during loss",),
        "With one bucket at a time every loss holds up the ring, also of 0.1 %, which then costs a quarter. Ours loses "
        "less than was published: a lost packet is sent again two round trips after it left. How much the library that "
        "was measured keeps under way, and when its NICs send again, is not published.",
        held=False,
    ),
    Experiment("figure 17", "all-to-all: better at every size", "all-to-all-with-many-evs", ("goodput",)),
    Experiment(
        "figure 17",
        "the same with few paths",
        "all-to-all-with-few-evs",
        ("goodput",),
        "Eight EVs are as good as many here: a late path gets fewer turns (`path_shares`), so few of them crowd no "
        "longer. No order of the two is shown.",
    ),
    Experiment(
        "figures 18 and 21",
        "7:1 incast: fair shares, the bystander is untouched",
        "incast-with-bystander",
        ("the bystander beside the incast", "fair shares", "the victim's link is full"),
        larger=(("fabric.planes", "8"),),
    ),
)

ROCE: Final = (
    Experiment(
        "figure 16",
        "ring all-reduce with one QP: about half of MRC",
        "roce-ring-1-qp",
        ("goodput",),
        larger=_BOTH_LARGER,
        remark="The slowest of all paths is the pace of the ring, and every seed draws its own: among sixteen NICs the "
        "worst draw is worse.",
        roce=True,
        mrc=MRC,
    ),
    Experiment(
        "figure 16",
        "with 8 QPs: more, and below MRC",
        "roce-ring-8-qps",
        ("goodput",),
        larger=_BOTH_LARGER,
        roce=True,
    ),
    Experiment(
        "figure 16",
        "with 16 QPs: hardly more than with 8, and below MRC",
        "roce-ring-16-qps",
        ("goodput",),
        larger=_BOTH_LARGER,
        roce=True,
    ),
    Experiment(
        "figure 16",
        "random loss of 1 %: unusable",
        "roce-random-loss-1",
        ("goodput during loss",),
        remark="Going back costs little at this rate. A lost last packet waits for the time-out, 67 ms; a step without "
        "loss takes a third of a millisecond.",
        roce=True,
        mrc=MRC,
    ),
    Experiment(
        "figure 17",
        "all-to-all: MRC is better at every size",
        "roce-all-to-all",
        ("goodput",),
        larger=(("fabric.nics_per_t0", "4"), ("fabric.t1_per_plane", "4")),
        remark="Four T0s, so that most blocks cross the T1s.",
        roce=True,
        mrc=MRC,
    ),
    Experiment(
        "figures 18 and 21",
        "DCQCN, 7:1 incast, one QP: the bystander loses a quarter",
        "roce-incast-1-qp",
        ("the bystander beside the incast", "its lowest millisecond", "the victim's link"),
        larger=(("fabric.t1_per_plane", "4"),),
        remark="One draw of the hash is one run: a bystander that shares no up-link with the incast loses nothing, one "
        "that shares it with several loses two thirds.",
        roce=True,
        mrc=MRC,
    ),
    Experiment(
        "figures 18 and 21",
        "DCQCN, 7:1 incast, 8 to 10 QPs: the bystander falls to 100 of 400 Gb/s",
        "roce-incast-8-qps",
        ("the bystander beside the incast", "its lowest millisecond", "the victim's link"),
        larger=(("fabric.t1_per_plane", "4"),),
        remark="The bystander has one QP; with eight of its own it loses nothing (97.5 %). The fewer the up-links, the "
        "deeper it falls.",
        roce=True,
    ),
    Experiment(
        "figures 18 and 21",
        "PFC alone, 7:1 incast: the bystander keeps 30 to 100 of 400 Gb/s",
        "roce-incast-pfc-only",
        ("the bystander beside the incast", "its lowest millisecond", "the victim's link"),
        larger=(("fabric.t1_per_plane", "4"),),
        remark="As with DCQCN: the draw decides with how many senders the bystander shares its up-link, and pauses are "
        "for the whole link.",
        roce=True,
    ),
    Experiment(
        "figure 22",
        "DCQCN tuned, 15:1 incast: 10 or 20 % of the line lost, by profile",
        "roce-dcqcn-100g",
        ("the victim's link", "fair shares"),
        remark="Of the 97.5 % that headers leave nothing is lost. The paper's two profiles are not published.",
        roce=True,
        mrc=MRC,
    ),
    Experiment(
        "figure 22",
        "the same with the other profile",
        "roce-dcqcn-40g",
        ("the victim's link", "fair shares"),
        remark="What is lost is lost in the first milliseconds: all rates fall to the floor and climb again; settled, "
        "nothing is.",
        roce=True,
    ),
)
"""RoCE in the same places."""
