// What is not as it should be in a snapshot: which parts are not up, of which plane, and which direction of a link a
// fault hits. Pure.

import { many } from "./scales.js";

const WORDS = [
  ["switch", "switch", "switches"],
  ["nic", "NIC", "NICs"],
  ["port", "NIC port", "NIC ports"],
  ["link", "link", "links"],
];
const known = new WeakMap();

/**
 * The parts of a snapshot that are not up: [{id, kind, plane, state, because}], nodes first, then NIC ports, then
 * links. `because`: of a port or a link, the part that is down and takes it along, or null. Reckoned once a snapshot.
 */
export function troublesOf(snapshot) {
  let found = known.get(snapshot);
  if (found === undefined) {
    found = [...switchTroubles(snapshot), ...nicTroubles(snapshot), ...linkTroubles(snapshot)];
    known.set(snapshot, found);
  }
  return found;
}

const planeOf = name => Number.parseInt(name.slice(name.lastIndexOf("p") + 1), 10);

function* switchTroubles(snapshot) {
  for (const [id, { state }] of Object.entries(snapshot.switches))
    if (state !== "up") yield { id, kind: "switch", plane: planeOf(id), state, because: null };
}

function* nicTroubles(snapshot) {
  for (const [id, { state }] of Object.entries(snapshot.nics))
    if (state !== "up") yield { id, kind: "nic", plane: null, state, because: null };
  for (const [id, { state, ports_up: ports }] of Object.entries(snapshot.nics))
    for (const [plane, up] of ports.entries())
      if (state === "up" && !up) yield { id: `${id}:${plane}`, kind: "port", plane, state: "down", because: null };
}

function* linkTroubles(snapshot) {
  const isDown = node => (snapshot.switches[node] ?? snapshot.nics[node])?.state === "down";
  for (const [id, { state }] of Object.entries(snapshot.links))
    if (state !== "up") {
      const because = state === "down" ? (id.split("~").find(isDown) ?? null) : null;
      yield { id, kind: "link", plane: planeOf(id), state, because };
    }
}

/** How many parts of a plane are not up. */
export const troublesIn = (snapshot, plane) => troublesOf(snapshot).filter(one => one.plane === plane);

/** Troubles counted in words, such as "2 switches, 5 links (1 impaired)"; "" where there are none. */
export function summed(troubles) {
  return WORDS.map(([kind, one, more]) => {
    const own = troubles.filter(trouble => trouble.kind === kind);
    const impaired = own.filter(trouble => trouble.state === "impaired").length;
    const said = impaired === own.length ? " impaired" : impaired ? ` (${impaired} only impaired)` : "";
    return own.length ? many(own.length, one, more) + said : "";
  })
    .filter(Boolean)
    .join(", ");
}

/**
 * Which directions of a link a snapshot's faults hit: a function from the link's id and record to {up, down}. Both,
 * unless every fault on it names one direction only.
 */
export function directionsOf(snapshot) {
  const oneWay = new Map();
  for (const fault of snapshot.faults)
    for (const target of fault.targets) {
      const [from, to] = target.split(">");
      if (to === undefined) continue;
      const upwards = `${from}~${to}` in snapshot.links;
      const id = upwards ? `${from}~${to}` : `${to}~${from}`;
      if (!oneWay.has(id)) oneWay.set(id, []);
      oneWay.get(id).push({ fault: fault.id, way: upwards ? "up" : "down" });
    }
  return (id, link) => {
    const hits = oneWay.get(id) ?? [];
    const all = link.faults.every(fault => hits.some(hit => hit.fault === fault));
    if (!all || !hits.length || !link.faults.length) return { up: true, down: true };
    return { up: hits.some(hit => hit.way === "up"), down: hits.some(hit => hit.way === "down") };
  };
}
