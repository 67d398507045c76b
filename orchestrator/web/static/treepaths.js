// The trees of pauses that the chosen part stands in, drawn over the map: the paused directions with heads towards those
// who wait, a double ring around the root, a single one around each node at the end.

import { mark, svg } from "./elements.js";
import { laneLines, portId } from "./layout.js";
import { lanesOfTrees, treesOf } from "./pauses.js";

const AWAY = 3; // from the middle of a link, beyond its own two lines

/** The elements, all of them empty: {element, lanes, roots, leaves}. */
export function treePaths() {
  const [lanes, roots, leaves] = ["lanes", "roots", "leaves"].map(name => svg("path", { class: name }));
  return { element: svg("g", { class: "pause-tree" }, lanes, roots, leaves), lanes, roots, leaves };
}

/** Draw the trees of a part; returns the ids of the links in them. */
export function drawTrees(paths, scene, part, snapshot) {
  const trees = treesOf(snapshot, part);
  const lanes = lanesOfTrees(trees, snapshot?.links ?? {}).filter(({ id }) => scene.parts.has(id));
  mark(paths.lanes, "d", lanes.map(lane => arrow(scene.parts.get(lane.id), lane.way, scene.lanes)).join(""));
  const roots = new Set(trees.flatMap(tree => placesOf(tree.root, tree, scene)));
  const leaves = new Set(trees.flatMap(tree => tree.leaves.flatMap(leaf => placesOf(leaf, tree, scene))));
  mark(paths.roots, "d", [...roots].map(one => ring(one, 4) + ring(one, 7)).join(""));
  mark(paths.leaves, "d", [...leaves].map(one => ring(one, 4)).join(""));
  return lanes.map(({ id }) => id);
}

/** The parts that stand for a node of a tree: a switch, or a NIC's tile and its port in the plane of the tree. */
function placesOf(node, tree, scene) {
  const plane = Number.parseInt(/p(\d+)-/.exec(tree.link || tree.steps[0]?.link || "")?.[1] ?? "-1", 10);
  return [scene.parts.get(node), scene.parts.get(portId(node, plane))].filter(Boolean);
}

function ring(part, away) {
  const [w, h] = [part.w / 2 + away, part.h / 2 + away];
  return `M${part.x - w} ${part.y - h}h${2 * w}v${2 * h}h${-2 * w}z`;
}

/** A way of a link from who pauses to who is paused, with a head there: a path. */
function arrow(link, way, lanes) {
  const [x1, y1, x2, y2] = laneLines(link, lanes + AWAY)[way];
  const [from, to] = way === "up" ? [[x2, y2], [x1, y1]] : [[x1, y1], [x2, y2]];
  const length = Math.hypot(to[0] - from[0], to[1] - from[1]) || 1;
  const [dx, dy] = [(to[0] - from[0]) / length, (to[1] - from[1]) / length];
  const [hx, hy] = [to[0] - 6 * dx, to[1] - 6 * dy];
  const head = `M${hx - 7 * dx - 4 * dy} ${hy - 7 * dy + 4 * dx}L${hx} ${hy}L${hx - 7 * dx + 4 * dy} ${hy - 7 * dy - 4 * dx}`;
  return `M${from[0]} ${from[1]}L${hx} ${hy}${head}`;
}
