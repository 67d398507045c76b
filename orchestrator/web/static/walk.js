// Where an arrow key leads in the picture: along the cables up and down, along a row left and right. Pure.

import { planeId, portId } from "./layout.js";

/**
 * The id of the part that `key` leads to from the part `id`, or `id` where there is nothing that way.
 *
 * `via` is the end of a link from which it was stepped on: left and right then go to the other links of that end.
 */
export function walk(scene, id, key, via = null) {
  const part = scene.parts.get(id);
  if (part === undefined) return scene.parts.keys().next().value;
  if (key === "PageUp" || key === "PageDown") return otherPlane(scene, part, key === "PageDown" ? 1 : -1);
  const steps = { plane: fromPlane, switch: fromSwitch, port: fromPort, nic: fromNic, link: fromLink };
  return steps[part.kind](scene, part, key, via) ?? id;
}

/** The links of a node or port that go up or down from it, from left to right by their far ends. */
export function linksOf(scene, id, upwards) {
  const found = [...scene.parts.values()].filter(part => part.kind === "link" && (upwards ? part.a : part.b) === id);
  return found.sort((one, other) => (upwards ? one.x2 - other.x2 : one.x1 - other.x1));
}

function rowOf(scene, part) {
  return [...scene.parts.values()]
    .filter(one => one.kind === part.kind && one.tier === part.tier)
    .sort((one, other) => one.plane - other.plane || (part.kind === "nic" ? 0 : one.x - other.x));
}

function beside(scene, part, key) {
  const row = rowOf(scene, part);
  return row[row.indexOf(part) + (key === "ArrowRight" ? 1 : -1)]?.id;
}

function fromPlane(scene, part, key) {
  if (key === "ArrowDown") return closest(scene, part, one => one.tier === "t1");
  if (key === "ArrowUp") return scene.parts.get(planeId(part.plane - scene.columns))?.id;
  return beside(scene, part, key);
}

function fromSwitch(scene, part, key) {
  if (key === "ArrowUp" && part.tier === "t1") return planeId(part.plane);
  if (key === "ArrowUp" || key === "ArrowDown") return nearestOf(linksOf(scene, part.id, key === "ArrowUp"), part);
  return beside(scene, part, key);
}

function fromPort(scene, part, key) {
  if (key === "ArrowUp") return linksOf(scene, part.id, true)[0]?.id;
  if (key === "ArrowDown") return part.nic;
  return beside(scene, part, key);
}

function fromNic(scene, part, key, via) {
  if (key === "ArrowUp") {
    const plane = scene.parts.get(via)?.plane ?? 0;
    return scene.parts.get(portId(part.id, plane))?.id;
  }
  return key === "ArrowDown" ? undefined : beside(scene, part, key);
}

function fromLink(scene, part, key, via) {
  if (key === "ArrowUp") return part.b;
  if (key === "ArrowDown") return part.a;
  const end = via === part.b ? part.b : part.a;
  const siblings = linksOf(scene, end, end === part.a);
  const row = siblings.length > 1 ? siblings : linksOf(scene, part.b, false);
  return row[row.indexOf(part) + (key === "ArrowRight" ? 1 : -1)]?.id;
}

function otherPlane(scene, part, step) {
  if (part.plane === null) return part.id;
  const plane = (part.plane + step + scene.planes) % scene.planes;
  const here = [...scene.parts.values()].filter(one => one.kind === part.kind && one.tier === part.tier);
  const own = here.filter(one => one.plane === part.plane).indexOf(part);
  return here.filter(one => one.plane === plane)[own]?.id ?? planeId(plane);
}

function closest(scene, part, wanted) {
  return nearestOf(
    [...scene.parts.values()].filter(one => one.plane === part.plane && wanted(one)),
    part,
  );
}

function nearestOf(candidates, part) {
  let best;
  for (const one of candidates) if (!best || Math.abs(one.x - part.x) < Math.abs(best.x - part.x)) best = one;
  return best?.id;
}
