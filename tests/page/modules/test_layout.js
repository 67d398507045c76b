import { laneLines, layOut, panelGrid, partAt } from "/static/layout.js";
import { fabric } from "./fabrics.js";
import { equal, holds, test } from "./suite.js";

const SIZES = [
  [1, 1, 1, 1],
  [1, 4, 4, 4],
  [2, 2, 2, 2],
  [8, 2, 4, 4],
  [8, 8, 8, 8],
  [4, 16, 43, 4],
  [8, 10, 12, 12],
];
const WINDOWS = [
  [880, 490],
  [1380, 720],
  [340, 560],
  [2500, 1200],
];

test("everything stands inside the picture and links end at their nodes", () => {
  for (const size of SIZES)
    for (const [width, height] of WINDOWS) {
      const made = fabric(...size);
      const scene = layOut(made, width, height);
      equal(
        scene.parts.size,
        made.planes + made.nics.length * (made.planes + 1) + made.switches.length + made.links.length,
      );
      for (const part of scene.parts.values()) {
        const inside = part.x - part.w / 2 > -1 && part.x + part.w / 2 < width + 1 && part.y + part.h / 2 < height + 1;
        holds(inside && part.y - part.h / 2 > -1, `${part.id} is outside at ${size}, ${width} x ${height}`);
        if (part.kind === "link") holds(part.y2 < part.y1, `${part.id} does not go up at ${size}`);
      }
    }
});

test("nodes of a plane do not cover each other", () => {
  for (const size of SIZES) {
    const scene = layOut(fabric(...size), 1380, 720);
    const nodes = [...scene.parts.values()].filter(part => part.plane === 0 && part.kind !== "link");
    for (const one of nodes)
      for (const other of nodes) {
        const apart =
          Math.abs(one.x - other.x) * 2 >= one.w + other.w - 0.5 ||
          Math.abs(one.y - other.y) * 2 >= one.h + other.h - 0.5;
        holds(one === other || apart, `${one.id} covers ${other.id} at ${size}`);
      }
  }
});

test("panels fill a wide window in rows and a narrow one in a column", () => {
  equal(panelGrid(8, 880, 430).columns, 4);
  equal(panelGrid(1, 880, 430).columns, 1);
  equal(panelGrid(2, 880, 430).columns, 2);
  equal(panelGrid(2, 300, 900).columns, 1);
});

test("the part at a point is the node on it, else the nearest link, else none", () => {
  const scene = layOut(fabric(2, 2, 2, 2), 880, 490);
  for (const part of scene.parts.values()) if (part.kind !== "link") equal(partAt(scene, part.x, part.y).id, part.id);
  for (const part of scene.parts.values()) {
    if (part.kind !== "link") continue;
    const [x, y] = [part.x1 + (part.x2 - part.x1) * 0.3, part.y1 + (part.y2 - part.y1) * 0.3];
    equal(partAt(scene, x, y).id, part.id);
  }
  equal(partAt(scene, 5, 245), null);
});

test("the two directions of a link lie on its two sides", () => {
  const { up, down } = laneLines({ x1: 10, y1: 100, x2: 10, y2: 0 }, 2);
  equal(
    [up, down],
    [
      [8, 100, 8, 0],
      [12, 100, 12, 0],
    ],
  );
});
