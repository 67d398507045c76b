import { lanesOf, pointAt } from "/static/chart.js";
import { isAbout } from "/static/lists.js";
import { faultSays } from "/static/lines.js";
import { faultOf, kindsFor, targetOf } from "/static/panel.js";
import { told } from "/static/runs.js";
import { Ring } from "/static/story.js";
import { rowsOf, tellingOf } from "/static/strips.js";
import { called, doing, event, stateOf } from "/static/words.js";
import { equal, test } from "./suite.js";

const LINK = { kind: "link", id: "p0-t0-0~p0-t1-1", plane: 0 };
const KINDS = [
  { kind: "flap", target: "link", figures: [] },
  { kind: "link_down", target: "link", figures: [] },
  { kind: "rate_limit", target: "link", figures: [{ name: "rate_bps", default: null, required: true }] },
  { kind: "ecn", target: "switch", figures: [{ name: "off", default: false, required: false }] },
  { kind: "t0_down", target: "switch", figures: [] },
  { kind: "control_cut", target: "node", figures: [] },
];

test("a part is offered the kinds that can hit it, the usual one first", () => {
  equal(
    kindsFor(LINK, KINDS).map(kind => kind.kind),
    ["link_down", "flap", "rate_limit"],
  );
  equal(
    kindsFor({ kind: "switch", tier: "t1" }, KINDS).map(kind => kind.kind),
    ["ecn", "control_cut"],
  );
  equal(
    kindsFor({ kind: "switch", tier: "t0" }, KINDS).map(kind => kind.kind),
    ["ecn", "t0_down", "control_cut"],
  );
  equal(
    kindsFor({ kind: "nic" }, KINDS).map(kind => kind.kind),
    ["control_cut"],
  );
});

test("targets are spelled as the server takes them", () => {
  equal(
    [targetOf(LINK), targetOf(LINK, "up"), targetOf(LINK, "down")],
    [LINK.id, "p0-t0-0>p0-t1-1", "p0-t1-1>p0-t0-0"],
  );
  equal(targetOf({ kind: "plane", id: "plane 3", plane: 3 }), "3");
  equal(targetOf({ kind: "port", id: "h003:5", plane: 5 }), "h003:5");
});

test("a form becomes a fault, or words about what is wrong with it", () => {
  equal(faultOf(LINK, KINDS[2], "up", { rate_bps: "1e9" }, "250"), {
    kind: "rate_limit",
    targets: ["p0-t0-0>p0-t1-1"],
    figures: { rate_bps: 1e9 },
    for_ns: 250_000,
  });
  equal(faultOf({ kind: "switch", id: "p0-t1-1" }, KINDS[3], "both", { off: "true" }, "").figures, { off: true });
  const wrong = (...asked) => {
    try {
      return faultOf(...asked);
    } catch (error) {
      return error.message;
    }
  };
  equal(wrong(LINK, KINDS[2], "both", {}, ""), "rate_limit needs rate_bps");
  equal(wrong(LINK, KINDS[1], "both", {}, "soon"), "the time is to be a number, not soon");
});

test("faults are told in a line", () => {
  const fault = {
    kind: "loss",
    title: "",
    targets: ["a", "b", "c", "d"],
    owner: "run-1",
    end_ns: 2000,
    in_force: false,
  };
  equal(faultSays(fault), "loss: a b c and 1 more, not in force, until 2 us (run-1)");
});

test("states of parts are found, and what they do is said", () => {
  const nic = { state: "up", goodput_bps: 1e9, ports_up: [true, false], evs: [{ good: 1 }, { assumed_bad: 2 }] };
  const seen = {
    nics: { h000: nic },
    links: { x: { state: "down", up: { utilisation: 0 }, down: { utilisation: 0.5 } } },
    switches: {},
    planes: [{ ports_down: 0 }, { ports_down: 1 }],
  };
  const port = { kind: "port", nic: "h000", id: "h000:1", plane: 1 };
  equal([stateOf(port, seen), stateOf({ ...port, plane: 0 }, seen), stateOf(port, null)], ["down", "up", "up"]);
  equal(stateOf({ kind: "plane", plane: 1 }, seen), "impaired");
  equal(doing({ kind: "nic", id: "h000" }, seen), "up, 1 Gb/s, 1 port down, 2 EVs assumed bad");
  equal(doing({ kind: "link", id: "x" }, seen), "down, up 0 %, down 50 %");
  equal(called(port), "NIC port h000:1");
});

test("the strips of a QP are grouped by plane, reserve apart", () => {
  const letters = { G: "good", S: "skip", B: "assumed_bad", D: "denied" };
  const rows = rowsOf({ states: "GgBs", evs: [1, 2, 3, 4], planes: [0, 0, 1, 1], paths: [0, 1, 0, 1] }, letters);
  equal(
    rows.map(row => row.plane),
    [0, 1],
  );
  equal(
    rows[1].cells.map(cell => [cell.state, cell.reserve]),
    [
      ["assumed_bad", false],
      ["skip", true],
    ],
  );
  equal(rows[1].sums, { good: 0, skip: 1, assumed_bad: 1, denied: 0 });
});

test("the QP that is shown first crosses the fabric", () => {
  const nics = ["h000", "h001", "h002"].map((id, place) => ({ id, t0: place >> 1 }));
  const qps = [
    ["h001", "rts"],
    ["h002", "error"],
    ["h002", "RTS"],
    [null, "reset"],
  ];
  const found = qps.map(([peer, state], qpn) => ({ qpn, peer, state }));
  equal(tellingOf(found, "h000", nics).qpn, 2);
  equal(tellingOf(found.slice(0, 2), "h000", nics).qpn, 0);
  equal(tellingOf(found.slice(3), "h000", nics).qpn, 3);
  equal(tellingOf([], "h000", nics), undefined);
});

test("bars of faults take the fewest lanes, and the last one takes the rest", () => {
  const bars = [
    [0, 10],
    [0, 4],
    [5, 9],
    [2, 3],
    [2, 3],
  ].map(([from, to]) => ({ from, to }));
  equal(lanesOf(bars, 8), [0, 1, 1, 2, 3]);
  equal(lanesOf(bars, 2), [0, 1, 1, 1, 1]);
});

test("a reading takes the newest point that is not after it", () => {
  const ring = new Ring(8);
  for (const at of [10, 20, 30]) ring.push(at);
  equal(
    [5, 10, 25, 99].map(at => pointAt(ring, at)),
    [-1, 0, 1, 2],
  );
});

test("lines of a run and of the log are put into words", () => {
  equal(told({ event: "look" }), null);
  equal(told({ event: "finding", held: false, text: "too slow" }), "✗ too slow");
  equal(told({ event: "end", verdict: "pass", reasons: [] }), "verdict: pass");
  equal(told({ event: "end", verdict: null, reasons: ["it came to nothing"] }), "ended: it came to nothing");
  const line = {
    kind: "ev_transition",
    node: "h000",
    qpn: 1,
    ev: 255,
    plane: 0,
    path: 2,
    source: "good",
    target: "assumed_bad",
    cause: "silence",
    section: "7",
  };
  equal(event(line).what, "QP 1 EV 0xff plane 0 path 2 good → assumed bad");
  equal(event({ kind: "port_change", port: 3, up: false, cause: "carrier" }).what, "port of plane 3 lost carrier");
  equal(event({ kind: "retransmit", qpn: 1, count: 1, cause: "sack_gap" }).why, "sack gap");
  const fault = { n: 1, kind: "fault", id: "f1", targets: ["a", "b", "c", "d"], end_ns: null };
  equal(event(fault).what, "fault, id f1, targets a b c and 1 more");
  equal(
    [isAbout(line, { kind: "nic", id: "h000" }), isAbout(line, { kind: "plane", plane: 1 }), isAbout(line, null)],
    [true, false, false],
  );
  equal(isAbout({ kind: "fault", targets: [LINK.id] }, LINK), true);
});
