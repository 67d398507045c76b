// Trees of pauses as lists of the panel: the reason, below it who pauses whom, and who waits at the end.

import { html, keyed, mark, write } from "./elements.js";
import { laneOf, pauseSays, pausesOf, pausing, rootSays, treesOf } from "./pauses.js";
import { shortened } from "./scales.js";

const DEEPEST = 6;
const ROWS_MAX = 80;
const ROOTS_MAX = 20;

/** The trees that a part stands in: {elements, draw(story)}; `choose(id)` goes to another part. */
export function pauseTreesOf(part, choose) {
  const head = html("h3", {}, "Who pauses whom");
  const list = html("ol", { class: "pauses", "aria-label": "Who pauses whom" });
  const draw = story => {
    const rows = treesOf(story.snapshot, part).flatMap((tree, place) => rowsOf(tree, place, story.snapshot));
    head.hidden = !rows.length;
    keyed(
      list,
      rows.slice(0, ROWS_MAX),
      row => row.key,
      row => makeRow(row, choose),
      fillRow,
    );
  };
  return { elements: [head, list], draw };
}

/** The roots of all trees, for the overview. */
export function pauseRootsOf(choose) {
  const head = html("h3", {}, "Pauses, each with its reason");
  const list = html("ul", { class: "pauses" });
  const draw = snapshot => {
    const trees = snapshot?.pause_trees ?? [];
    head.hidden = !trees.length;
    keyed(
      list,
      trees.slice(0, ROOTS_MAX).map(tree => ({
        key: `${tree.cls} ${tree.root} ${tree.link} ${tree.cause}`,
        says: `${rootSays(tree)}; at the end ${shortened(tree.leaves) || "nobody"}`,
        goes: tree.root,
        depth: 0,
        cause: tree.cause,
      })),
      row => row.key,
      row => makeRow(row, choose),
      fillRow,
    );
  };
  return { elements: [head, list], draw };
}

/** A tree as rows, its reason first. Pure. */
export function rowsOf(tree, place, snapshot) {
  const head = { key: `${place}`, says: rootSays(tree), goes: tree.root, depth: 0, cause: tree.cause };
  const steps = tree.steps.map(step => {
    const lane = laneOf(step.link, snapshot.links);
    const pause = lane && pausesOf(snapshot, lane.id)[lane.way].find(one => one.cls === tree.cls);
    return {
      key: `${place} ${step.link}`,
      says: pausing(step.link) + (pause ? `: ${pauseSays(pause)}` : ""),
      goes: lane?.id ?? tree.root,
      depth: Math.min(step.depth, DEEPEST),
      cause: "",
    };
  });
  const end = `at the end: ${shortened(tree.leaves, 8) || "nobody"}`;
  return [head, ...steps, { key: `${place} end`, says: end, goes: tree.leaves[0] ?? tree.root, depth: 1, cause: "" }];
}

function makeRow(row, choose) {
  return html("li", {}, html("button", { type: "button", class: "row-link", onclick: () => choose(row.goes) }));
}

function fillRow(element, row) {
  write(element.firstElementChild, row.says);
  mark(element, "class", `depth-${row.depth}`);
  mark(element, "data-cause", row.cause);
}
