"""Scenarios as chance writes them: every kind of fault and of work, on fabrics of two planes, over within seconds.

A scenario is a function of its seed. Instants and targets are taken from few, so that faults meet: on one link or node,
at one instant, on a node that is away, at the begin of the run.
"""

from random import Random
from typing import Any

Table = dict[str, Any]

_AT = (0, 0, "1rtt", "8rtt", "8rtt", "16rtt", "16rtt", "20rtt", "1us", "100ns", "27rtt", "33.3rtt")
_FOR = ("1rtt", "4rtt", "8rtt", "8rtt", "12rtt", "20rtt")
_LINKS = ("p0-t0-0~p0-t1-0", "p0-t0-0>p0-t1-0", "h000~p0-t0-0", "p1-t0-1~p1-t1-1", "h001>p1-t0-0")


def scenario(seed: int) -> Table:
    """One file as plain data."""
    chance = Random(seed)
    t0s = chance.choice((1, 2))
    fabric = {
        "planes": 2,
        "t0_per_plane": t0s,
        "t1_per_plane": 2,
        "nics_per_t0": 2 if t0s == 1 else chance.choice((1, 2)),
        "evs_per_qp": 16,
        "reserve_evs_per_qp": 8,
    }
    nics = t0s * fabric["nics_per_t0"]
    return {
        "name": f"chance-{seed}",
        "fabric": fabric,
        "seed": str(seed),
        "length": "250rtt",
        "look": chance.choice(("5rtt", "3rtt", "7rtt")),
        "workload": [_work(chance, number, nics) for number in range(chance.choice((1, 1, 2, 3)))],
        "method": [_entry(chance, number, t0s, nics) for number in range(chance.randint(2, 7))],
        "expect": [{"measure": "bytes_wrong", "at_most": 0}, {"measure": "packets_lost", "at_most": 0}],
    }


def _work(chance: Random, number: int, nics: int) -> Table:
    size = {"bucket_bytes": chance.choice(("16KiB", 60000, "100KiB"))}
    block = {"block_bytes": chance.choice(("4KiB", 33332))}
    message = {"message_bytes": chance.choice((4, "4KiB", "100KiB"))}
    steps = {"steps": chance.randint(2, 12)}
    kinds: dict[str, Table] = {
        "p2p": {**message, "messages": 30, "both_ways": chance.random() < 0.5, "gap": chance.choice((0, "1us"))},
        "permutation": {**message, "for": "60rtt"},
        "incast": {**message, "messages": 12},
        "all_to_all": {**block, **steps, "window": chance.choice((0, 1))},
        "ring_all_reduce": {**size, **steps},
        "halving_doubling_all_reduce": {**size, **steps},
        "reduce_scatter": {**size, **steps},
        "all_gather": {**block, **steps},
        "broadcast": {**message, **steps, "root": nics - 1},
        "training": {**size, **steps, "buckets": 3, "compute": "4us", "jitter": "2us"},
        "trace": {"messages": [{"from": "h000", "to": 1, "bytes": size["bucket_bytes"], "at": at} for at in _AT]},
    }
    kind = chance.choice(list(kinds))
    even = {"p2p", "permutation"}
    ranks: Any = nics // 2 * 2 if kind in even else "all"
    return {"name": f"w{number}", "kind": kind, "ranks": ranks, "begin": chance.choice(_AT), **kinds[kind]}


def _fault(chance: Random, t0s: int, nics: int) -> Table:
    """A kind with its figures and what it is about."""
    share = chance.choice(("1%", "20%", "100%"))
    figures: dict[str, Table] = {
        "link_down": {},
        "flap": {"period": chance.choice(("2rtt", "3rtt")), "duty": chance.choice((0.5, "20%")), "jitter": "200ns"},
        "optic": {},
        "loss": {"toxicity": share, "burst_packets": chance.choice((1, 4))},
        "gray": {"toxicity": share},
        "corruption": {"toxicity": share},
        "duplication": {"toxicity": share},
        "reordering": {"toxicity": share, "delay": "3us"},
        "delay": {"toxicity": share, "delay": "1us", "jitter": chance.choice((0, "2us"))},
        "rate_limit": {"rate": chance.choice(("10G", "25G"))},
        "black_hole": chance.choice(({"ev": 3}, {"usid": 257}, {"ev": 4, "usid": 258})),
        "ecn_misconfigured": chance.choice(({"off": True}, {"min_bytes": "1KiB", "max_bytes": "2KiB"})),
    }
    on_switch = ["switch_crash", "switch_reboot", "switch_freeze", "ecn_misconfigured", "trimming_off", "control_cut"]
    on_nic = ["nic_port_down", "nic_crash", "host_loss", "control_cut"]
    kinds = [*figures, *on_switch, *on_switch, "t0_down", "plane_down", *on_nic]
    kind = chance.choice(kinds)
    nic = f"h{chance.randrange(nics):03d}"
    about: Table
    if kind == "nic_port_down":
        about = {"selector": chance.choice(({"nic_ports": f"{nic}:1"}, {"of": nic}, {"plane": 0}))}
    elif kind == "plane_down":
        about = {"selector": {"plane": chance.randrange(2)}}
    elif kind in ("nic_crash", "host_loss"):
        about = {"selector": {"nodes": nic}}
    elif kind == "t0_down":
        about = {"selector": {"nodes": "p0-t0-0"}}
    elif kind == "control_cut":
        about = {"selector": {"nodes": [nic, "p0-t1-0"]}}
    elif kind in on_switch:
        about = {"selector": chance.choice(({"nodes": "p0-t1-0"}, {"tier": "t1"}, {"nodes": "p0-*"})), "mode": "one"}
    else:
        links: list[Table] = [{"links": name} for name in _LINKS[: 3 if t0s == 1 or nics < 4 else 4]]
        links += [{"tier": "t0-t1"}, {"tier": "nic-t0"}, {"of": "p0-t1-0"}]
        mode = chance.choice(({"mode": "one"}, {}, {"mode": "fixed-percent", "value": 50}))
        about = {"selector": chance.choice(links), **mode}
        if not any(">" in name for name in (about["selector"].get("links", ""),)):
            about["direction"] = chance.choice(("both", "up", "down"))
    return {"fault": kind, **figures.get(kind, {}), **about}


def _entry(chance: Random, number: int, t0s: int, nics: int) -> Table:
    entry = {"name": f"f{number}", "at": chance.choice(_AT)}
    if chance.random() < 0.1:
        drawn = [_fault(chance, t0s, nics) | {"for": chance.choice(_FOR), "weight": 2} for _ in range(3)]
        drawn = [one for one in drawn if one["fault"] != "host_loss"]
        drawn.append({"fault": "link_down", "for": {"least": "2rtt", "most": "9rtt"}})
        storm = {"every": "6rtt", "at_once_max": chance.choice((1, 3)), "faults": drawn}
        return {**entry, "for": "60rtt", "chaos": storm}
    fault = _fault(chance, t0s, nics)
    entry |= fault
    if fault["fault"] != "host_loss" and (chance.random() < 0.8 or fault["fault"] in ("switch_reboot", "flap")):
        entry["for"] = chance.choice(_FOR)
    when = chance.random()
    if when < 0.2:
        measures = (
            {"measure": "packets_lost", "at_least": 1},
            {"measure": "goodput", "of": "h000", "over": "6rtt", "at_most": "50%"},
            {"measure": "evs", "of": "assumed_bad", "at_least": 1},
        )
        entry |= {"when": chance.choice(measures), "times": chance.choice((1, 3))}
    elif when < 0.4 and "for" in entry:
        entry |= {"every": "25rtt", "times": 3, "turns": chance.choice(("same", "anew"))}
    if "ramp" not in entry and fault["fault"] in ("loss", "gray") and "for" in entry and chance.random() < 0.4:
        entry["ramp"] = {"to": {"toxicity": "2%"}, "steps": 3}
    return entry
