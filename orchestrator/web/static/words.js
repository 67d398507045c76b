// What is said of the parts of a fabric, for people who read and for those who listen. Pure.

import { pauseSays, pausesOf, pausing } from "./pauses.js";
import { statesSay } from "./rc.js";
import { bytes, count, instant, many, percent, rate, shortened, span } from "./scales.js";
import { evSums } from "./story.js";
import { summed, troublesIn } from "./troubles.js";

export const NODE_WORDS = { up: "up", frozen: "frozen", down: "down", silent: "does not answer" };
/** The letter beside the shape of a node that is not up. */
export const NODE_LETTERS = { up: "", frozen: "F", down: "×", silent: "?" };
export const EV_STATES = ["good", "skip", "assumed_bad", "denied"];
export const EV_WORDS = { good: "good", skip: "skip", assumed_bad: "assumed bad", denied: "denied" };

/** How a part is called in a sentence. */
export function called(part) {
  if (part.kind === "plane") return part.id;
  if (part.kind === "port") return `NIC port ${part.id}`;
  if (part.kind === "nic") return `NIC ${part.id}`;
  if (part.kind === "switch") return `${part.tier.toUpperCase()} ${part.id}`;
  return `link ${part.id}`;
}

/** The state of a part as one word of NodeState or LinkState; `up` while nothing is known. */
export function stateOf(part, snapshot) {
  if (snapshot === null) return "up";
  if (part.kind === "link") return snapshot.links[part.id]?.state ?? "up";
  if (part.kind === "switch") return snapshot.switches[part.id]?.state ?? "up";
  if (part.kind === "nic") return snapshot.nics[part.id]?.state ?? "up";
  if (part.kind === "port") return portState(part, snapshot);
  return troublesIn(snapshot, part.plane).length ? "impaired" : "up";
}

function portState(part, snapshot) {
  const nic = snapshot.nics[part.nic];
  if (nic === undefined) return "up";
  return nic.state === "up" && nic.ports_up[part.plane] === false ? "down" : nic.state;
}

/** One line of what a part is doing. */
export function doing(part, snapshot) {
  if (snapshot === null) return "";
  const says = { link: ofLink, switch: ofSwitch, nic: ofNic, port: ofPort, plane: ofPlane };
  return says[part.kind](part, snapshot);
}

function ofLink(part, snapshot) {
  const link = snapshot.links[part.id];
  if (link === undefined) return "not looked at";
  const { up, down } = pausesOf(snapshot, part.id);
  return [
    `${link.state}, up ${percent(link.up.utilisation)}, down ${percent(link.down.utilisation)}`,
    ...[...up, ...down].map(pause => `${pausing(pause.link)}: ${pauseSays(pause)}`),
  ].join("; ");
}

function ofSwitch(part, snapshot) {
  const one = snapshot.switches[part.id];
  if (one === undefined) return "not looked at";
  return NODE_WORDS[one.state] + (one.drops ? `, ${many(one.drops, "drop")}` : "");
}

function ofNic(part, snapshot) {
  const nic = snapshot.nics[part.id];
  if (nic === undefined) return "not looked at";
  const dark = nic.ports_up.filter(up => !up).length;
  const bad = evSums(nic.evs).assumed_bad;
  return [
    NODE_WORDS[nic.state],
    rate(nic.goodput_bps),
    dark ? `${many(dark, "port")} down` : null,
    bad ? `${many(bad, "EV")} assumed bad` : null,
    nic.rc ? `QPs ${statesSay(nic.rc.states)}` : null,
    pausedSays(nic.paused ?? []),
  ]
    .filter(Boolean)
    .join(", ");
}

const pausedSays = shares => (Math.max(0, ...shares) > 0 ? `paused ${percent(Math.max(...shares))} of the time` : null);

function ofPort(part, snapshot) {
  const state = portState(part, snapshot);
  const carrier = { up: "carrier", down: "no carrier" }[state] ?? NODE_WORDS[state];
  const share = snapshot.nics[part.nic]?.paused?.[part.plane] ?? 0;
  return [carrier, pausedSays([share])].filter(Boolean).join(", ");
}

function ofPlane(part, snapshot) {
  const plane = snapshot.planes[part.plane];
  if (plane === undefined) return "not looked at";
  const bad = evSums([plane.evs]).assumed_bad;
  const troubles = summed(troublesIn(snapshot, part.plane));
  return [
    rate(plane.goodput_bps),
    troubles ? `not up: ${troubles}` : null,
    bad ? `${many(bad, "EV")} assumed bad` : null,
  ]
    .filter(Boolean)
    .join(", ");
}

/** The figures of one direction of a link, as [what, figure]. */
export function directionFigures(direction) {
  return [
    ["utilisation", percent(direction.utilisation)],
    ["queue", bytes(direction.queue_bytes)],
    ["marks", count(direction.marks)],
    ["trims", count(direction.trims)],
    ["drops", count(direction.drops)],
  ];
}

/** A line of the event log in words beside its instant: {node, what, why, section}. */
export function event(line) {
  const what = (HAPPENED[line.kind] ?? others)(line);
  return { node: line.node ?? "", what, why: spaced(line.cause ?? ""), section: line.section ?? "" };
}

const spaced = word => String(word).replaceAll("_", " ");

const HAPPENED = {
  ev_transition: line =>
    `QP ${line.qpn} EV 0x${line.ev.toString(16)} plane ${line.plane} path ${line.path} ` +
    `${EV_WORDS[line.source]} → ${EV_WORDS[line.target]}`,
  qp_change: line => `QP ${line.qpn} ${line.source} → ${line.target}`,
  port_change: line => `port of plane ${line.port} ${line.up ? "has" : "lost"} carrier`,
  peer_port_change: line =>
    `heard that the port of plane ${line.port} of NIC ${line.peer_index} is ${line.up ? "up" : "down"}`,
  pause_begun: line => `port ${line.port} class ${line.cls}: paused since ${instant(line.since_ns)}`,
  pause_ended: line =>
    `port ${line.port} class ${line.cls}: paused ${span(line.paused_ns)} of ${span(line.until_ns - line.since_ns)}, ` +
    `${count(line.frames)} frames`,
  watchdog_fired: line =>
    `port ${line.port} class ${line.cls} obeys no more, paused for ${span(line.paused_ns)} without a break`,
  watchdog_restored: line => `port ${line.port} class ${line.cls} obeys again`,
  ecmp_member: line => `up-link ${line.port} is ${line.up ? "in the group again" : "out of the group"}, ${line.members} left`,
  way_lost: line =>
    `${line.up ? "has a way again" : "no way is left"} to ${many(line.lids, "LID")} behind ${line.peer ?? `port ${line.port}`}`,
  way_avoided: line =>
    `${line.peer ?? `port ${line.port}`} is ${line.avoided ? "left out" : "taken again"} for ${many(line.lids, "LID")}`,
  lft_written: line => `block ${line.block} of the table was written, ${many(line.entries, "place")} changed`,
  path_migrated: line => `QP ${line.qpn} has taken its second path, by port ${line.port}`,
  routing_session: line => `${line.protocol} with ${line.peer ?? `port ${line.port}`} is ${line.up ? "up" : "over"}`,
  routes_heard: line => `${line.peer ?? `port ${line.port}`} tells of ${line.reach} prefixes, takes back ${line.unreach}`,
  route_damped: line => `${line.prefix} from port ${line.port} is ${line.damped ? "left out" : "used again"}`,
  fib_written: line => `${line.prefix} leads to ${line.ports || "nowhere"}, ${line.moved} of ${line.flows} flows moved`,
  fib_repaired: line =>
    `port ${line.port} is ${line.up ? "in groups again" : "out of all groups"}, ${line.moved} of ${line.flows} flows moved`,
  retransmit: line => `QP ${line.qpn} sent ${many(line.count, "packet")} again`,
};

const COMMON = ["n", "at_ns", "wall_s", "node", "kind", "cause", "section"];

/** A kind with no sentence of its own: its name and whatever it says. */
function others(line) {
  const says = Object.entries(line).filter(([key, value]) => !COMMON.includes(key) && value !== null && value !== "");
  return [spaced(line.kind), ...says.map(([key, value]) => `${spaced(key)} ${told(value)}`)].join(", ");
}

const told = value =>
  Array.isArray(value) ? shortened(value) : typeof value === "object" ? JSON.stringify(value) : value;
