import { EVENTS_MAX, Ring, Story, evSums, faultsOn } from "/static/story.js";
import { fabric, snapshot } from "./fabrics.js";
import { equal, test } from "./suite.js";

const SMALL = fabric(2, 2, 2, 2);
const FAULT = {
  id: "f1",
  kind: "link_down",
  title: "",
  targets: ["p0-t0-0~p0-t1-1"],
  owner: "",
  start_ns: 500,
  end_ns: null,
  in_force: true,
};

test("a ring keeps the latest", () => {
  const ring = new Ring(3);
  for (const value of [1, 2, 3, 4, 5]) ring.push(value);
  equal([ring.length, ring.at(0), ring.at(2), ring.last()], [3, 3, 5, 5]);
});

test("a series has one point per instant, also while time stands still", () => {
  const story = new Story(SMALL, 4);
  for (const at of [100, 200, 200, 200, 300]) story.take(snapshot(SMALL, at));
  equal([story.at.length, story.goodput[1].last(), story.window()], [3, 300, [100, 300]]);
  equal(story.take(snapshot(SMALL, 250)), false);
});

test("what happened before the page came stands in its lines", () => {
  const story = new Story(SMALL);
  story.recall({
    rows: [
      { at_ns: 10, goodput_bps: [1, 2] },
      { at_ns: 20, goodput_bps: [3, 4] },
    ],
    faults: [{ ...FAULT, gone_ns: 700 }],
  });
  story.take(snapshot(SMALL, 1000));
  equal([story.at.length, story.goodput[1].at(0), story.faults.get("f1").over_ns], [3, 2, 700]);
});

test("a fault that is gone is over, and stays in the picture", () => {
  const story = new Story(SMALL);
  story.take(snapshot(SMALL, 100));
  story.take(snapshot(SMALL, 1000, { faults: [FAULT] }));
  equal(
    story.bars().map(({ from, to, open }) => [from, to, open]),
    [[500, 1000, true]],
  );
  story.take(snapshot(SMALL, 2000));
  story.take(snapshot(SMALL, 3000));
  equal(
    story.bars().map(({ from, to, open }) => [from, to, open]),
    [[500, 2000, false]],
  );
});

test("events come once, and no more than there is room for", () => {
  const story = new Story(SMALL);
  const lines = Array.from({ length: EVENTS_MAX + 5 }, (_, place) => ({ n: place + 1 }));
  equal(story.tell(lines.slice(0, 10)).length, 10);
  equal(story.tell(lines).length, EVENTS_MAX - 5);
  equal([story.events.length, story.events[0].n, story.eventsDropped], [EVENTS_MAX, 6, 5]);
});

test("faults are found by name, direction, end and plane", () => {
  const seen = snapshot(SMALL, 1, {
    faults: [FAULT, { ...FAULT, id: "f2", targets: ["p0-t1-1>p0-t0-0"] }, { ...FAULT, id: "f3", targets: ["1"] }],
  });
  seen.switches["p0-t1-1"] = { faults: ["f2"] };
  const on = part => faultsOn(seen, part).map(fault => fault.id);
  equal(on({ kind: "link", id: "p0-t0-0~p0-t1-1" }), ["f1", "f2"]);
  equal(on({ kind: "link", id: "p0-t0-0~p0-t1-0" }), []);
  equal(on({ kind: "plane", id: "plane 1", plane: 1 }), ["f3"]);
  equal(on({ kind: "switch", id: "p0-t1-1" }), ["f2"]);
});

test("EVs add up", () => {
  equal(
    evSums([
      { good: 3, skip: 1 },
      { good: 2, assumed_bad: 4 },
    ]),
    { good: 5, skip: 1, assumed_bad: 4, denied: 0, all: 10 },
  );
});
