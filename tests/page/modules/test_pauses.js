import { pausedRows } from "/static/figures.js";
import { rowsOf } from "/static/pauselist.js";
import { laneOf, lanesOfTrees, pauseClass, pausesOf, rootSays, treesOf } from "/static/pauses.js";
import { doing } from "/static/words.js";
import { fabric, snapshot } from "./fabrics.js";
import { equal, test } from "./suite.js";

const SMALL = fabric(2, 2, 2, 2);
const pause = (link, share, changes = {}) => ({
  link, cls: 3, share, frames: 1200, paused: false, cause: "queue", because: [], ...changes,
});
const step = (link, depth, above = "") => ({ link, depth, above });

function paused() {
  const tree = {
    cls: 3,
    cause: "congested_port",
    root: "p0-t0-0",
    link: "p0-t0-0>h000",
    steps: [step("p0-t1-0>p0-t0-0", 1), step("p0-t0-1>p0-t1-0", 2, "p0-t1-0>p0-t0-0"), step("h002>p0-t0-1", 3, "p0-t0-1>p0-t1-0")],
    leaves: ["h002"],
    cycle: [],
  };
  const seen = snapshot(SMALL, 1, {
    pauses: [
      pause("p0-t1-0>p0-t0-0", 0.05),
      pause("p0-t0-1>p0-t1-0", 0.45, { paused: true }),
      pause("h002>p0-t0-1", 0.7),
      pause("h002>p0-t0-1", 0.1, { cls: 4 }),
    ],
    pause_trees: [tree],
  });
  seen.nics.h002 = { state: "up", goodput_bps: 0, ports_up: [true, true], evs: [{}, {}], paused: [0.7, 0] };
  return seen;
}

test("directions are found among the links, whichever end is named first", () => {
  const { links } = paused();
  equal(laneOf("h002>p0-t0-1", links), { id: "h002~p0-t0-1", way: "up" });
  equal(laneOf("p0-t1-0>p0-t0-1", links), { id: "p0-t0-1~p0-t1-0", way: "down" });
  equal(laneOf("h002>nowhere", links), null);
});

test("a link has the pauses of both its ways, and a class for how heavy they are", () => {
  const { up, down } = pausesOf(paused(), "h002~p0-t0-1");
  equal([up.map(one => one.cls), down], [[3, 4], []]);
  equal([pauseClass(up), pauseClass(down), pauseClass([pause("x>y", 0.3)]), pauseClass([pause("x>y", 0)])], [3, 0, 2, 1]);
  equal(pausesOf(paused(), "h000~p0-t0-0"), { up: [], down: [] });
  equal([pausesOf(snapshot(SMALL, 1), "x"), pausesOf(null, "x")], [{ up: [], down: [] }, { up: [], down: [] }]);
});

test("a part has the trees that it stands in", () => {
  const found = part => treesOf(paused(), part).length;
  equal(
    [
      { kind: "link", id: "h002~p0-t0-1" },
      { kind: "link", id: "h000~p0-t0-0" },
      { kind: "switch", id: "p0-t1-0" },
      { kind: "nic", id: "h002" },
      { kind: "port", id: "h002:0", nic: "h002", plane: 0 },
    ].map(found),
    [1, 1, 1, 1, 1],
  );
  equal(
    [
      { kind: "link", id: "h001~p0-t0-0" },
      { kind: "switch", id: "p0-t1-1" },
      { kind: "nic", id: "h003" },
      { kind: "port", id: "h002:1", nic: "h002", plane: 1 },
      { kind: "plane", id: "plane 0", plane: 0 },
      null,
    ].map(found),
    [0, 0, 0, 0, 0, 0],
  );
});

test("a tree is a list from its reason to those who wait", () => {
  const seen = paused();
  const [tree] = seen.pause_trees;
  equal(rootSays(tree), "class 3: p0-t0-0, its port to h000 is congested");
  equal(
    rowsOf(tree, 0, seen).map(row => [row.depth, row.says, row.goes]),
    [
      [0, "class 3: p0-t0-0, its port to h000 is congested", "p0-t0-0"],
      [1, "p0-t0-0 pauses p0-t1-0: class 3 paused 5 %, 1,200 frames", "p0-t0-0~p0-t1-0"],
      [2, "p0-t1-0 pauses p0-t0-1: class 3 paused 45 %, 1,200 frames, now too", "p0-t0-1~p0-t1-0"],
      [3, "p0-t0-1 pauses h002: class 3 paused 70 %, 1,200 frames", "h002~p0-t0-1"],
      [1, "at the end: h002", "h002"],
    ],
  );
  equal(
    lanesOfTrees(seen.pause_trees, seen.links).map(lane => `${lane.id} ${lane.way}`),
    ["p0-t0-0~p0-t1-0 down", "p0-t0-1~p0-t1-0 up", "h002~p0-t0-1 up"],
  );
});

test("a pause is told with its link and its NIC", () => {
  const seen = paused();
  equal(
    doing({ kind: "link", id: "p0-t0-1~p0-t1-0" }, seen),
    "up, up 0 %, down 0 %; p0-t1-0 pauses p0-t0-1: class 3 paused 45 %, 1,200 frames, now too",
  );
  equal(doing({ kind: "nic", id: "h002" }, seen), "up, 0 Gb/s, paused 70 % of the time");
  equal(doing({ kind: "port", id: "h002:0", nic: "h002", plane: 0 }, seen), "carrier, paused 70 % of the time");
  equal(doing({ kind: "port", id: "h002:1", nic: "h002", plane: 1 }, seen), "carrier");
  equal(pausedRows(seen, "h002~p0-t0-1"), [
    ["paused, class 3", "70 %, 1,200 frames", "-"],
    ["paused, class 4", "10 %, 1,200 frames", "-"],
  ]);
});
