"""What each part of the endpoint is worth: the same trial with it and without."""

from collections.abc import Mapping
from dataclasses import replace

from mrcfabric.topology import Setting
from nicd.core.settings import NicSettings
from studies import columns
from studies.fabrics import eight_by_100, four_by_100
from studies.faults import LinkFault, LossyEv
from studies.flows import START_NS, Flow, incast, permutation
from studies.outcome import Outcome
from studies.study import More, Study
from studies.trial import Trial

MIB = 1 << 20


def _replaced(outcome: Outcome) -> int:
    return outcome.nics["ev_replacements"]


WINDOWS: tuple[tuple[str, Mapping[str, Setting]], ...] = (
    ("nscc", {"congestion": "nscc"}),
    ("nscc, no quick adapt", {"congestion": "nscc", "disable_qa": True}),
    ("nscc, receiver penalty", {"congestion": "nscc", "receiver_penalty": "incast"}),
    ("fixed window", {"congestion": "fixed"}),
)


def _congestion(seed: str) -> dict[str, Trial]:
    trials = {}
    for name, nic in WINDOWS:
        for degree in (4, 7):
            topology = four_by_100(seed, nic=nic, t0_per_plane=3)
            crowd = incast(topology, degree, 4 * MIB, messages=7)
            window_ns = (START_NS + 100_000, START_NS + 400_000)
            trials[f"{name}: {degree} to 1"] = Trial(topology, crowd, window_ns=window_ns)
    for name, nic in (WINDOWS[0], WINDOWS[-1]):
        topology = four_by_100(seed, nic=nic, link_rates_bps={"p0-t0-0~p0-t1-0": 25_000_000_000})
        flows = permutation(topology, 4 * MIB, messages=5)
        window_ns = (START_NS + 100_000, START_NS + 240_000)
        trials[f"{name}: permutation, a slow link"] = Trial(topology, flows, window_ns=window_ns)
    return trials


CONGESTION = Study(
    name="ablation_congestion",
    title="NSCC and its parts",
    published="",
    setup="4 planes of 100 Gb/s, 3 T0s of 4 NICs and 4 T1s each, 4 and 7 NICs that send to one without end, rates "
    "between 100 and 400 us; and a permutation of 8 NICs below 2 T0s with a link at 25 Gb/s and no room elsewhere. "
    "The fixed window is 1.5 bandwidth-delay products, cut by trims only.",
    trials=_congestion,
    columns=(
        columns.sum_share(),
        columns.least_share(),
        columns.fairness(),
        columns.MARKED,
        columns.TRIMS,
        columns.TRIMS_PATH,
        columns.RTT,
    ),
    limits="Over a last hop that does not mark, NSCC's windows grow by the fair increase until something is "
    "trimmed. With the public constants quick adapt sets a sender back that delivered less than an eighth of the "
    "largest window in 1.75 base RTTs: 0.107 of the line. Seven equal shares are 0.143, so that chance decides who "
    "falls below; with four, nobody does.",
    seeds=3,
)


def _reserve(seed: str) -> dict[str, Trial]:
    at_ns = START_NS + 50_000
    trials = {}
    for reserve in (0, 8, 16, 32):
        topology = eight_by_100(seed, evs_per_qp=16, reserve_evs_per_qp=reserve)
        faults = tuple(LossyEv(0, plane, 200_000, at_ns) for plane in range(4))
        flows = (Flow(0, topology.nics_per_t0, 8 * MIB, 4),)
        window_ns = (at_ns, at_ns + 200_000)
        trials[f"{reserve} in reserve"] = Trial(topology, flows, faults, window_ns=window_ns, fault_ns=at_ns)
    return trials


RESERVE = Study(
    name="ablation_reserve",
    title="Reserve EVs",
    published="",
    setup="8 planes of 100 Gb/s, one flow with 16 active EVs, 2 per plane; in four planes the path of one EV loses 20 "
    "% of its packets from 50 us on. Rates over the 200 us that follow.",
    trials=_reserve,
    columns=(
        columns.sum_share(),
        columns.RETIRED,
        columns.count("replaced", _replaced),
        columns.LOST,
        columns.MARKED,
        columns.TRIMS_PATH,
    ),
    seeds=3,
)


def _skip(seed: str) -> dict[str, Trial]:
    slow = {"p0-t0-0~p0-t1-0": 50_000_000_000}
    trials = {}
    for name, switch in (("marks and SKIP", {}), ("no marks", {"ecn": False})):
        topology = four_by_100(seed, switch=switch, link_rates_bps=slow)
        flows = permutation(topology, 4 * MIB, messages=5, below=3)
        trials[name] = Trial(topology, flows, window_ns=(START_NS + 100_000, START_NS + 300_000))
    return trials


SKIP = Study(
    name="ablation_skip",
    title="Marks and SKIP",
    published="",
    setup="As in the study of one slow link, at 50 Gb/s. Without marks an EV enters SKIP by a trim only.",
    trials=_skip,
    columns=(
        columns.mean_share(),
        columns.least_share(),
        columns.count("skips", lambda outcome: outcome.nics["ev_skips"]),
        columns.TRIMS_PATH,
        columns.RTT,
    ),
    claims=(More("Without marks the slow link is trimmed more.", "trims in the fabric", "no marks", "marks and SKIP"),),
    seeds=3,
)


def _reorder(seed: str) -> dict[str, Trial]:
    """A congested fabric in which nothing is lost, and a link that loses, with the threshold at several places."""
    at_ns = START_NS + 60_000
    fabric = four_by_100(seed)
    trials = {}
    for rtts in (0.5, 1.0, 1.5, 5.0):
        least_ns = int(rtts * fabric.base_rtt_ns())
        knobs: Mapping[str, Setting] = {"reorder_ns_min": least_ns}
        if rtts > NicSettings(base_rtt_ns=fabric.base_rtt_ns()).reorder_ns / fabric.base_rtt_ns():
            knobs = {**knobs, "reorder_ns": least_ns}
        topology = replace(fabric, nic=knobs)
        flows = permutation(topology, 4 * MIB, messages=4)
        window_ns = (at_ns, at_ns + 150_000)
        cut = (LinkFault("p0-t0-0~p0-t1-0", at_ns, loss_ppm=20_000),)
        trials[f"from {rtts:g} base RTT on"] = Trial(topology, flows, cut, window_ns=window_ns, fault_ns=at_ns)
    return trials


REORDER = Study(
    name="ablation_reorder",
    title="Reorder threshold",
    published="",
    setup="4 planes of 100 Gb/s, a permutation of 8 NICs; one T0-T1 link loses 2 % from 60 us on. The threshold "
    "adapts between the value given and 5 base RTT (the last row: it is fixed there).",
    trials=_reorder,
    columns=(
        columns.mean_share(),
        columns.REACTION,
        columns.LOST,
        columns.NEEDLESS,
        columns.RETIRED,
    ),
    seeds=3,
)


def _probes(seed: str) -> dict[str, Trial]:
    at_ns = START_NS + 60_000
    trials = {}
    for successes in (1, 2, 4):
        topology = four_by_100(seed, nic={"probe_successes": successes})
        flows = permutation(topology, 4 * MIB, messages=10, below=3)
        lossy = (LinkFault("p0-t0-0~p0-t1-0", at_ns, loss_ppm=200_000),)
        window_ns = (at_ns, at_ns + 300_000)
        trials[f"{successes} in a row"] = Trial(topology, flows, lossy, window_ns=window_ns, fault_ns=at_ns)
    return trials


PROBES = Study(
    name="ablation_probes",
    title="Probes that bring an EV back",
    published="",
    setup="4 planes of 100 Gb/s, a permutation of three NICs per T0; one T0-T1 link loses 20 % from 60 us on. Rates "
    "over the 300 us that follow.",
    trials=_probes,
    columns=(
        columns.mean_share(),
        columns.LOST,
        columns.RETIRED,
        columns.count("probes", lambda outcome: outcome.nics["probes_sent"]),
        columns.NEEDLESS,
    ),
    claims=(More("One answer is too few for a path that loses some.", "EVs retired", "1 in a row", "4 in a row"),),
    seeds=3,
)

STUDIES = (CONGESTION, RESERVE, SKIP, REORDER, PROBES)
