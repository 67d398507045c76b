// Pauses of a lossless fabric: which direction of which link is paused, and the trees of pauses that a part has to do
// with. The server has put the trees together (`orchestrator.live.pause_tree`). Pure.

import { count, percent } from "./scales.js";

const NONE = { up: [], down: [] };
const known = new WeakMap();

/** The link and the way ("up", away from the NICs, or "down") of a direction such as "h000>p0-t0-0"; null: no such. */
export function laneOf(direction, links) {
  const [from, to] = direction.split(">");
  if (`${from}~${to}` in links) return { id: `${from}~${to}`, way: "up" };
  return `${to}~${from}` in links ? { id: `${to}~${from}`, way: "down" } : null;
}

/** The pauses of a link by its ways: {up: [pause], down: [pause]}. Reckoned once a snapshot. */
export function pausesOf(snapshot, id) {
  if (!snapshot?.pauses?.length) return NONE;
  let found = known.get(snapshot);
  if (found === undefined) {
    found = new Map();
    for (const pause of snapshot.pauses) {
      const lane = laneOf(pause.link, snapshot.links);
      if (lane === null) continue;
      if (!found.has(lane.id)) found.set(lane.id, { up: [], down: [] });
      found.get(lane.id)[lane.way].push(pause);
    }
    known.set(snapshot, found);
  }
  return found.get(id) ?? NONE;
}

/** How heavily a direction is paused: 0 not at all, 1 hardly, 2 for a good part of the time, 3 for most of it. */
export function pauseClass(pauses) {
  if (!pauses.length) return 0;
  const most = Math.max(...pauses.map(pause => pause.share));
  return most < 0.1 ? 1 : most < 0.5 ? 2 : 3;
}

/** The trees in which a part stands: as root, as one who pauses or as one who is paused. */
export function treesOf(snapshot, part) {
  const trees = snapshot?.pause_trees ?? [];
  if (!part || !trees.length) return [];
  const ends = { link: isLink, switch: hasNode, nic: hasNode, port: hasPort }[part.kind];
  if (ends === undefined) return [];
  return trees.filter(
    tree =>
      (["switch", "nic"].includes(part.kind) && tree.root === part.id) ||
      [tree.link, ...tree.steps.map(step => step.link)].some(link => link && ends(link.split(">"), part)),
  );
}

const isLink = ([from, to], part) => part.id === `${from}~${to}` || part.id === `${to}~${from}`;
const hasNode = (ends, part) => ends.includes(part.id);
const hasPort = (ends, part) => ends.includes(part.nic) && ends.some(end => end.startsWith(`p${part.plane}-`));

/** The paused directions of trees, each once: [{id, way}]. */
export function lanesOfTrees(trees, links) {
  const lanes = new Map();
  for (const tree of trees)
    for (const { link } of tree.steps) if (!lanes.has(link)) lanes.set(link, laneOf(link, links));
  return [...lanes.values()].filter(Boolean);
}

/** A pause in words: its class, for how much of the time, frames. */
export const pauseSays = pause =>
  `class ${pause.cls} paused ${percent(pause.share)}, ${count(pause.frames)} frames${pause.paused ? ", now too" : ""}`;

/** Who pauses whom, of a direction. */
export function pausing(link) {
  const [from, to] = link.split(">");
  return `${to} pauses ${from}`;
}

/** The root of a tree in words. */
export function rootSays(tree) {
  const reasons = {
    congested_port: `its port to ${tree.link.split(">")[1]} is congested`,
    slow_receiver: "it takes packets more slowly than they come",
    storm: "it pauses without a reason",
    unknown: "why is not known",
    deadlock_suspect: "pauses go round in a circle: a deadlock if they last",
  };
  return `class ${tree.cls}: ${tree.root}, ${reasons[tree.cause] ?? tree.cause}`;
}
