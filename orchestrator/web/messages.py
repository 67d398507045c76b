"""The messages between the live map's server and its page: every path, every message, every key.

`orchestrator.web.server` is the server, `static/` holds the page. Everything is JSON in UTF-8. Keys have the names of
the record fields they come from. Instants are fabric time in nanoseconds (`_ns`); `wall_s` is Unix time.

Who may ask
    The server listens on loopback and answers a request only when its `Host` is a loopback name with the server's
    port and its `Origin`, if it has one, is the server's own. Reading needs nothing else, unless the fabric is open to
    its owner only. A request that changes something (POST, DELETE) needs the header `X-Mrcfabric-Token`. The token is
    the fragment of the address that the command printed (`http://127.0.0.1:8787/#token=...`); the page keeps it for
    its tab.
    A refusal is `{"error": text}` with 400 (a mistake in what was asked), 401 (the token), 403 (host or origin), 404,
    409 (the fabric or a run that goes on does not allow it), 503 (too many pages are open) or 504 (no answer in time).
    The page can show the text.

GET /api/fabric                 what does not change (`fabric`)
    {"name", "system", "version", "planes", "t0_per_plane", "t1_per_plane", "nics_per_t0", "rate_bps", "link_delay_ns",
     "base_rtt_ns", "evs_per_qp", "reserve_evs_per_qp", "owner", "look_hz", "lossless", "transport": "mrc"|"rc",
     "nodes": [{"name", "role": "nic"|"t0"|"t1", "plane": number|null, "index", "t0": number|null}],
     "links": [{"name", "plane", "tier": "nic-t0"|"t0-t1", "a", "b", "rate_bps"}],
     "ev_letters": {"G": "good", "S": "skip", "B": "assumed_bad", "D": "denied"}}
    `index`: within role and plane; `t0`: of a NIC, the number of its T0 in every plane. `a` is the lower end, and
    `links` come in the order of the topology: NIC to T0 by NIC and plane, then T0 to T1 by plane. `owner` is the owner
    of the faults that pages make, `look_hz` how often a snapshot is pushed, `lossless` whether switches pause.
    `version` is different for every launch of a fabric: a page that comes back to another version reloads itself.

GET /api/history                the last minutes, for pages that open late (`orchestrator.web.history`)
    {"rows": [{"number", "at_ns", "span_ns", "wall_s", "dilation", "running", "valid", "goodput_bps": [per plane],
               "evs": [{state: count} per plane], "ports_down": [per plane]}],
     "faults": [{...FaultView, "gone_ns": number|null}]}
    `rows`: thinned snapshots, oldest first. `faults`: the faults seen, oldest first; `gone_ns` is the instant by which
    one was over.

GET /api/kinds                  [{"kind", "target": "link"|"switch"|"nic"|"nic-port"|"plane"|"node", "meaning",
                                  "figures": [{"name", "default", "required", "meaning"}]}]
GET /api/qps/NIC                [{"qpn", "peer": name|null, "peer_qpn": number|null, "state", "port": number|null,
                                  "sport": number|null, "rate_bps": number|null, "unfinished": number|null}]
    The last four are those of RC QPs: its port (the plane), what switches hash beside the addresses, its rate, and
    messages that are not finished.
GET /api/scenarios              [{"id", "name", "description", "fits": bool, "why"}]; `why` it does not fit this fabric
GET /api/runs                   the run that goes on, or the last one, or null: see `run` below
GET /api/runs/report            the report of the last run, a page of its own (404 before there is one)

POST /api/faults                {"kind", "targets": [names], "figures": {name: value}?, "for_ns": number?}
    -> {"fault": {"id", "kind", "title", "targets", "owner", "windows": [[start_ns, end_ns|null, figures]]}}
    Names as `mrcfabric fault add` takes them: `p0-t0-0~p0-t1-1`, `p0-t0-0>p0-t1-1`, `p1-t1-0`, `h003`, `h003:5`, `5`.
DELETE /api/faults/ID           heal one -> {"healed": [ids]}
DELETE /api/faults?target=NAME  heal all that have this target, or for a link one of its directions
    -> {"healed": [ids]}
POST /api/runs                  {"scenario": id, "seed": text?} -> {"run": {...}}; 409 while one goes on
    A seed has 1 to 200 characters, none of them a control character.
DELETE /api/runs                ends it at its next look, with a report; again: at once -> {"run": {...}}

GET /api/stream                 a WebSocket. From the server, each one JSON object with a `type`:

    {"type": "snapshot", "snapshot": {...}, "look_hz": number|null}
        A whole `orchestrator.live.snapshot.Snapshot` (docs/schema/snapshot.json). Sent at once when the page opens,
        then as often as `look_hz`; every second while nothing but the number changes. A slow page gets the newest
        one, not every one: `number` may jump. `look_hz`: how often the fabric was looked at lately, which is less than
        the `look_hz` of the fabric where a look takes longer than that; null: not known yet. The page shows it when
        it is much less.
    {"type": "events", "events": [...], "lost": number}
        New lines of the merged event log (docs/schema/event_log.json), oldest first. The first message has the latest
        lines so far. `lost`: how many lines before these are no longer kept.
    {"type": "evs", "nic", "qpn", "error": text, "states": text, "evs": [numbers], "planes": [numbers],
     "paths": [numbers]}
        One watched QP, sent with each look; when pages watch many QPs, these take turns. `states` has one letter for
        each EV (`ev_letters` of the fabric): upper case for EVs in use, lower case for the reserve. `evs`, `planes`
        and `paths` have the same order, by plane. When there are no EVs, `error` says why and the rest is empty;
        otherwise `error` is "".
    {"type": "run", "run": {...}|null, "lines": [...], "lost": number}
        `run`: {"number", "scenario", "name", "phase": "starting"|"running"|"ending"|"ended", "exit_code": number|null,
        "verdict": text|null, "error": text, "report": path|null}. `lines`: what `mrcfabric run --json` has written
        since the message before (docs/schema/events.json); the first message has the kept lines of the last run.
    {"type": "error", "error": text}
        The fabric could not be looked at. The server goes on trying; the next snapshot means that it is back.

    From the page:

    {"watch": [{"nic", "qpn"}, ...]}
        Asks for `evs` of these QPs from now on, at most WATCHED_MAX; an empty list ends it. The server answers a
        message that it does not understand with an `error` message.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec

from mrcfabric.naming import parse_name, shown
from mrcfabric.topology import Topology
from nicd.core.ev_state import EV_STATES
from orchestrator.faults.kinds import KINDS
from orchestrator.live.snapshot import Snapshot
from orchestrator.planning.abilities import lossless, transport_of

TOKEN_HEADER: Final = "X-Mrcfabric-Token"
WATCHED_MAX: Final = 8
"""How many QPs one page may watch at once."""
EV_LETTERS: Final[Mapping[str, str]] = {"good": "G", "skip": "S", "assumed_bad": "B", "denied": "D"}
assert set(EV_LETTERS) == set(EV_STATES)


def snapshot(seen: Snapshot, look_hz: float | None = None) -> str:
    """Make a `snapshot` message; `look_hz`: looks a second lately."""
    return _text({"type": "snapshot", "snapshot": seen, "look_hz": look_hz})


def events(lines: Sequence[Mapping[str, Any]], lost: int) -> str:
    """Make an `events` message."""
    return _text({"type": "events", "events": lines, "lost": lost})


def evs(nic: str, qpn: int, rows: Sequence[Mapping[str, Any]], why: str = "") -> str:
    """Make an `evs` message from the rows of a NIC's `ev_table`; `why` says why there are none."""
    ordered = sorted(rows, key=lambda row: (row["plane"], not row["active"], row["path"], row["ev"]))
    letters = [_letter(row["state"], row["active"]) for row in ordered]
    columns = {f"{key}s": [row[key] for row in ordered] for key in ("ev", "plane", "path")}
    return _text({"type": "evs", "nic": nic, "qpn": qpn, "error": why, "states": "".join(letters), **columns})


def _letter(state: str, active: bool) -> str:
    letter = EV_LETTERS[state.lower()]
    return letter if active else letter.lower()


def run(state: Mapping[str, Any] | None, lines: Sequence[Mapping[str, Any]], lost: int) -> str:
    """Make a `run` message."""
    return _text({"type": "run", "run": state, "lines": lines, "lost": lost})


def error(text: str) -> str:
    """Make an `error` message."""
    return _text({"type": "error", "error": text})


def watched(text: str) -> list[tuple[str, int]]:
    """Read which QPs a page asks to watch. Raises ValueError with a message for the page."""
    try:
        asked = msgspec.json.decode(text, type=_Asked).watch
    except (msgspec.MsgspecError, RecursionError) as wrong:
        raise ValueError(f"not understood: {wrong}") from None
    if len(asked) > WATCHED_MAX:
        raise ValueError(f"{len(asked)} QPs are more than the {WATCHED_MAX} that can be watched at once")
    for one in asked:
        found = parse_name(one.nic)
        if found is None or found.tier != "nic":
            raise ValueError(f"{shown(one.nic)} is no NIC")
    return [(one.nic, one.qpn) for one in asked]


class _Watch(msgspec.Struct):
    nic: str
    qpn: Annotated[int, msgspec.Meta(ge=0, lt=1 << 24)]


class _Asked(msgspec.Struct, forbid_unknown_fields=True):
    watch: list[_Watch]


def fabric(topology: Topology, *, version: str, owner: str, look_hz: float) -> dict[str, Any]:
    """The answer to GET /api/fabric: what never changes about a fabric."""
    sizes = (
        "name", "planes", "t0_per_plane", "t1_per_plane", "nics_per_t0", "rate_bps", "link_delay_ns", "evs_per_qp",
        "reserve_evs_per_qp",
    )  # fmt: skip
    return {
        "version": version,
        "system": topology.system_name,
        **{key: getattr(topology, key) for key in sizes},
        "base_rtt_ns": topology.base_rtt_ns(),
        "owner": owner,
        "look_hz": look_hz,
        "transport": transport_of(topology),
        "lossless": lossless(topology),
        "nodes": list(_nodes(topology)),
        "links": list(_links(topology)),
        "ev_letters": {letter: state for state, letter in EV_LETTERS.items()},
    }


def _nodes(topology: Topology) -> Iterable[dict[str, Any]]:
    for name in topology.node_names():
        node = topology.parse_node(name)
        is_nic = node.tier == "nic"
        yield {
            "name": name,
            "role": node.tier,
            "plane": None if is_nic else node.plane,
            "index": node.number,
            "t0": node.number // topology.nics_per_t0 if is_nic else None,
        }


def _links(topology: Topology) -> Iterable[dict[str, Any]]:
    for link in topology.links():
        yield {
            "name": link.name,
            "plane": link.plane,
            "tier": "nic-t0" if topology.parse_node(link.a).tier == "nic" else "t0-t1",
            "a": link.a,
            "b": link.b,
            "rate_bps": topology.link_rates_bps.get(link.name, topology.rate_bps),
        }


def qps(topology: Topology, rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The answer to GET /api/qps: the QPs of a NIC, from the rows of its `qp_table`."""
    return [
        {
            "qpn": row["qpn"],
            "peer": None if "peer_index" not in row else topology.node_name(row["peer_index"]),
            "peer_qpn": row.get("peer_qpn"),
            "state": row["state"],
            **{key: row.get(key) if "sport" in row else None for key in ("port", "sport", "rate_bps", "unfinished")},
        }
        for row in rows
    ]


def kinds() -> list[dict[str, Any]]:
    """The answer to GET /api/kinds: every kind of fault in the catalogue."""
    return [
        {
            "kind": name,
            "target": kind.target.value,
            "meaning": kind.meaning,
            "figures": [
                {"name": figure, "default": row.default, "required": row.required, "meaning": row.meaning}
                for figure, row in kind.figures.items()
            ],
        }
        for name, kind in KINDS.items()
    ]


def _text(message: Mapping[str, Any]) -> str:
    return msgspec.json.encode(message).decode()
