import { layOut } from "/static/layout.js";
import { linksOf, walk } from "/static/walk.js";
import { fabric } from "./fabrics.js";
import { equal, holds, test } from "./suite.js";

const scene = layOut(fabric(2, 2, 2, 2), 880, 490);
const go = (id, ...keys) => keys.reduce((at, key) => walk(scene, at, `Arrow${key}`), id);

test("up and down follow the cables", () => {
  equal(go("h000", "Up"), "h000:0");
  equal(go("h000:0", "Up"), "h000~p0-t0-0");
  equal(go("h000~p0-t0-0", "Up"), "p0-t0-0");
  equal(go("p0-t0-0", "Up"), "p0-t0-0~p0-t1-0");
  equal(go("p0-t0-0~p0-t1-0", "Up"), "p0-t1-0");
  equal(go("p0-t1-0", "Up"), "plane 0");
  equal(go("plane 0", "Down", "Down", "Down", "Down", "Down", "Down"), "h000");
});

test("left and right follow the row, over into the plane beside", () => {
  equal(go("p0-t1-0", "Right"), "p0-t1-1");
  equal(go("p0-t1-1", "Right"), "p1-t1-0");
  equal(go("p1-t0-0", "Left"), "p0-t0-1");
  equal(go("plane 0", "Right"), "plane 1");
  equal(go("h003:0", "Right"), "h000:1");
  equal(go("h000", "Right"), "h001");
  equal(go("h000", "Left"), "h000");
});

test("from a link, left and right go to the others of the node one came from", () => {
  equal(
    linksOf(scene, "p0-t1-1", false).map(link => link.id),
    ["p0-t0-0~p0-t1-1", "p0-t0-1~p0-t1-1"],
  );
  equal(walk(scene, "p0-t0-0~p0-t1-1", "ArrowRight", "p0-t1-1"), "p0-t0-1~p0-t1-1");
  equal(walk(scene, "p0-t0-0~p0-t1-1", "ArrowLeft", "p0-t0-0"), "p0-t0-0~p0-t1-0");
  equal(walk(scene, "h000~p0-t0-0", "ArrowRight", "h000:0"), "h001~p0-t0-0");
});

test("the page keys go to the same part of another plane", () => {
  equal(walk(scene, "p0-t0-1~p0-t1-0", "PageDown"), "p1-t0-1~p1-t1-0");
  equal(walk(scene, "p0-t1-1", "PageUp"), "p1-t1-1");
  equal(walk(scene, "h002", "PageUp"), "h002");
});

test("every part is reached from every other, and every step leads to a part", () => {
  const seen = new Set(["h000"]);
  for (const id of seen)
    for (const key of ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "PageUp", "PageDown"])
      for (const via of [null, scene.parts.get(id).a ?? null, scene.parts.get(id).b ?? null])
        seen.add(walk(scene, id, key, via));
  holds(
    [...scene.parts.keys()].every(id => seen.has(id)),
    "some are out of reach",
  );
  equal(seen.size, scene.parts.size);
});
