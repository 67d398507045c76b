import { qpCells, rcErrors, rcPlaneRows, rcPortRows, rcRows, statesSay } from "/static/rc.js";
import { doing } from "/static/words.js";
import { fabric, snapshot } from "./fabrics.js";
import { equal, test } from "./suite.js";

const rc = {
  states: { reset: 0, init: 0, rtr: 0, rts: 6, error: 1 },
  path: "ecmp",
  ports: [4, 2],
  rate_bps_min: 4e9,
  rate_bps_mean: 25e9,
  slowed: 3,
  cnps_sent_per_s: 1234.4,
  cnps_received_per_s: 0,
  naks_sent_per_s: 2,
  naks_received_per_s: 0,
  retransmitted_bytes: 8192,
};
const nic = { state: "up", qps: 7, goodput_bps: 0, ports_up: [true, true], evs: [{}, {}], paused: [0.25, 0], rc };
const seen = () => snapshot(fabric(2, 1, 1, 2), 1, { nics: { h000: nic, h001: { ...nic, paused: [0, 0] } } });

test("an RC NIC tells of its QPs, rates, notifications and pauses", () => {
  equal(rcRows(nic), [
    ["QPs by state", "6 rts, 1 error"],
    ["rate of a QP, mean and least", "25 Gb/s, 4 Gb/s"],
    ["QPs slowed (DCQCN)", "3"],
    ["paths by ECMP, QPs by plane", "4 2"],
    ["CNPs sent, received", "1,234 /s, 0 /s"],
    ["NAKs sent, received", "2 /s, 0 /s"],
    ["sent again since the look before", "8 KiB"],
    ["paused, by plane", "25 % 0 %"],
  ]);
  equal(rcPortRows(nic, 0), [["QPs that send here", "4"], ["paused", "25 %"]]);
  equal(doing({ kind: "nic", id: "h000" }, seen()), "up, 0 Gb/s, QPs 6 rts, 1 error, paused 25 % of the time");
});

test("planes and the whole fabric have sums", () => {
  equal(rcPlaneRows(seen(), 0), [["QPs that send here", "8"], ["NIC ports that are paused", "1"]]);
  equal(rcErrors(seen()), { all: 14, errors: 2 });
  equal(statesSay({ rts: 0 }), "none");
});

test("a QP is a row", () => {
  const qp = { qpn: 17, peer: "h003", state: "rts", port: 1, sport: 49152, rate_bps: 12.5e9, unfinished: 2 };
  equal(qpCells(qp), ["17", "h003", "rts", "1", "49152", "12.5 Gb/s", "2"]);
  equal(qpCells({ qpn: 18, peer: null, state: "init" }), ["18", "nobody", "init", "-", "-", "-", "-"]);
});
