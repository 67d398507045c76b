import { directionsOf, summed, troublesIn, troublesOf } from "/static/troubles.js";
import { columnsOf } from "/static/strips.js";
import { fabric, snapshot } from "./fabrics.js";
import { equal, test } from "./suite.js";

const SMALL = fabric(2, 2, 2, 2);
const fault = (id, ...targets) => ({ id, kind: "loss", targets });

function broken() {
  const seen = snapshot(SMALL, 1);
  seen.switches = { "p0-t1-0": { state: "up" }, "p1-t1-1": { state: "down" } };
  seen.nics = { h000: { state: "up", ports_up: [true, false] } };
  seen.links["p1-t0-0~p1-t1-1"].state = "down";
  seen.links["h000~p1-t0-0"].state = "down";
  seen.links["h001~p0-t0-0"].state = "impaired";
  return seen;
}

test("what is not up is found with its plane, and what takes it along", () => {
  const found = troublesOf(broken()).map(one => [one.id, one.plane, one.state, one.because]);
  equal(found, [
    ["p1-t1-1", 1, "down", null],
    ["h000:1", 1, "down", null],
    ["h000~p1-t0-0", 1, "down", null],
    ["h001~p0-t0-0", 0, "impaired", null],
    ["p1-t0-0~p1-t1-1", 1, "down", "p1-t1-1"],
  ]);
  equal(troublesIn(broken(), 0).length, 1);
});

test("troubles are counted in words", () => {
  equal(summed(troublesOf(broken())), "1 switch, 1 NIC port, 3 links (1 only impaired)");
  equal(summed(troublesIn(broken(), 0)), "1 link impaired");
  equal(summed([]), "");
});

test("a fault of one direction hits that one, any other both", () => {
  const seen = { ...snapshot(SMALL, 1), faults: [fault("f1", "h000>p0-t0-0"), fault("f2", "p0-t0-0>h001")] };
  const hit = directionsOf(seen);
  equal(hit("h000~p0-t0-0", { faults: ["f1"] }), { up: true, down: false });
  equal(hit("h001~p0-t0-0", { faults: ["f2"] }), { up: false, down: true });
  equal(hit("h000~p0-t0-0", { faults: ["f1", "f9"] }), { up: true, down: true });
  equal(hit("h002~p0-t0-1", { faults: [] }), { up: true, down: true });
});

test("cells of few planes take more lines", () => {
  const rows = (planes, cells) => Array.from({ length: planes }, () => ({ cells: Array.from({ length: cells }) }));
  equal(
    [
      [8, 20],
      [4, 40],
      [2, 80],
      [1, 160],
      [8, 32],
      [16, 16],
    ].map(size => columnsOf(rows(...size))),
    [20, 20, 16, 16, 32, 16],
  );
});
