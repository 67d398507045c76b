// How each kind of part looks in the picture: its elements, and how a snapshot changes them. Links are drawn by
// `cables.js`; what stands for them here can be pointed at and focused.

import { mark, svg, write } from "./elements.js";
import { laneLines } from "./layout.js";
import { rate } from "./scales.js";
import { troublesIn } from "./troubles.js";
import { EV_STATES, NODE_LETTERS } from "./words.js";

const ALARM = 7; // half of the least size in which a letter in a node can be read

/** The line around a part, or along a link: a path. */
export function outline(part) {
  if (part.kind === "link") return `M${part.x1} ${part.y1}L${part.x2} ${part.y2}`;
  const box = part.panel
    ? { x: part.x, y: part.panel.y + part.panel.h / 2, w: part.panel.w - 10, h: part.panel.h - 10 }
    : part;
  const [w, h] = [box.w / 2 + 3, box.h / 2 + 3];
  return `M${box.x - w} ${box.y - h}h${2 * w}v${2 * h}h${-2 * w}z`;
}

/** The heads of two arrows, one for each direction of a link, where the direction ends: a path. */
export function arrows(link, lanes) {
  const heads = Object.values(laneLines(link, lanes + 3)).map(([x1, y1, x2, y2], place) => {
    const [from, to] = place ? [[x2, y2], [x1, y1]] : [[x1, y1], [x2, y2]];
    const length = Math.hypot(to[0] - from[0], to[1] - from[1]) || 1;
    const [dx, dy] = [(to[0] - from[0]) / length, (to[1] - from[1]) / length];
    const [x, y] = [to[0] - 8 * dx, to[1] - 8 * dy];
    return `M${x} ${y}L${x - 9 * dx - 4 * dy} ${y - 9 * dy + 4 * dx}L${x - 9 * dx + 4 * dy} ${y - 9 * dy - 4 * dx}z`;
  });
  return heads.join("");
}

/** What stands above everything where a part in trouble is too small for its letter: an element, or null. */
export function alarmOf(part, state) {
  const small = part.w / 2 < (part.kind === "port" ? 3.5 : ALARM);
  if (!small || state === "up" || !["switch", "port"].includes(part.kind)) return null;
  const cross = state === "down" ? "M-3.2 -3.2L3.2 3.2M-3.2 3.2L3.2 -3.2" : "";
  return svg(
    "g",
    { class: "alarm", "data-state": state, transform: `translate(${part.x} ${part.y})` },
    part.kind === "port" ? null : svg("circle", { r: ALARM }),
    svg("path", { d: cross }),
    cross ? null : svg("text", { "text-anchor": "middle", y: 4, "font-size": 11 }, NODE_LETTERS[state]),
  );
}

/** What makes a part of each kind: {element, letter?, draw(own, snapshot, fabric)?}. */
export const BUILDERS = { plane: buildPlane, link: buildLink, switch: buildSwitch, port: buildPort, nic: buildNic };

function buildPlane(part) {
  const { x, y, w, h } = part.panel;
  const says = svg("text", { class: "figure", x: x + w - 8, y: y + 16, "text-anchor": "end" });
  const amiss = svg("tspan", { class: "amiss", dx: 7 });
  const bar = stateBar(x + 8, y + 20, w - 16, 6);
  const element = svg(
    "g",
    { class: "plane" },
    svg("rect", { class: "panel", x: x + 0.5, y: y + 0.5, width: w - 1, height: h - 1, rx: 5 }),
    svg("text", { class: "name", x: x + 8, y: y + 16 }, w < 150 ? String(part.plane) : `plane ${part.plane}`, amiss),
    says,
    ...bar.rects,
  );
  return { element, draw: (own, snapshot) => drawPlane(part, says, amiss, bar, snapshot) };
}

function drawPlane(part, says, amiss, bar, snapshot) {
  const plane = snapshot?.planes[part.plane];
  const troubles = plane ? troublesIn(snapshot, part.plane).filter(one => one.because === null).length : 0;
  write(amiss, troubles ? `✗ ${troubles}${part.w > 190 ? " not up" : ""}` : "");
  write(says, plane ? rate(plane.goodput_bps) : "");
  bar.draw(plane ? [plane.evs] : []);
}

/** EVs by state side by side, as shares of `width`. */
function stateBar(x, y, width, height) {
  const rects = EV_STATES.map(state => {
    const low = state === "good" ? height / 2 : 0; // lower than the others: what is not good stands out
    return svg("rect", { class: `bar ev-${state}`, y: y + low / 2, height: height - low, x, width: 0 });
  });
  const draw = tables => {
    const sums = EV_STATES.map(state => tables.reduce((sum, table) => sum + (table[state] ?? 0), 0));
    const all = sums.reduce((one, other) => one + other, 0);
    let from = x;
    for (const [place, rect] of rects.entries()) {
      const size = all ? Math.round((sums[place] / all) * width * 2) / 2 : 0;
      mark(rect, "x", String(from));
      mark(rect, "width", String(size));
      from += size;
    }
  };
  return { rects, draw };
}

function buildLink(part) {
  return { element: svg("path", { class: "link", d: outline(part) }) };
}

function buildSwitch(part) {
  const r = part.w / 2;
  const shape =
    part.tier === "t0"
      ? svg("rect", { class: "shape", x: -r, y: -r, width: part.w, height: part.h, rx: Math.min(2, r / 3) })
      : svg("circle", { class: "shape", r });
  const letter = svg("text", {
    class: "letter",
    "text-anchor": "middle",
    y: r * 0.55,
    "font-size": Math.max(7, r * 1.55),
  });
  const index =
    r >= 7
      ? svg("text", { class: "index", "text-anchor": "middle", y: 4, "font-size": 11 }, String(part.index))
      : null;
  const badge = svg("circle", { class: "badge", cx: r, cy: -r, r: Math.max(2, r / 3) });
  const element = svg(
    "g",
    { class: `node ${part.tier}`, transform: `translate(${part.x} ${part.y})` },
    shape,
    index,
    letter,
    badge,
  );
  return { element, letter, draw: drawSwitch };
}

function drawSwitch(own, snapshot) {
  const one = snapshot?.switches[own.part.id];
  mark(own.element, "data-drops", String(Boolean(one?.drops)));
  mark(own.element, "data-faulty", String(Boolean(one?.faults.length)));
}

function buildPort(part) {
  const r = part.w / 2;
  const element = svg(
    "g",
    { class: "port", transform: `translate(${part.x} ${part.y})` },
    svg("rect", { class: "shape", x: -r, y: -r, width: part.w, height: part.h }),
    svg("path", { class: "cross", d: `M${-r} ${-r}L${r} ${r}M${-r} ${r}L${r} ${-r}` }),
  );
  return { element };
}

function buildNic(part, fabric) {
  const [x, y, wide, tall] = [part.x - part.w / 2, part.y - part.h / 2, part.w >= 90, part.h >= 24];
  const figure =
    part.w >= 112 ? svg("text", { class: "figure", x: x + part.w - 6, y: y + 14, "text-anchor": "end" }) : null;
  const letter = svg("text", {
    class: "letter",
    x: x + part.w - 6,
    y: y + (tall ? 14 : part.h - 4),
    "text-anchor": "end",
    "font-size": 12,
  });
  const [left, ticksWide, top] = [x + 4, part.w - 8, y + (wide ? 20 : tall ? 15 : part.h - 6)];
  const ticks = Array.from({ length: fabric.planes }, (_, plane) => {
    const box = {
      x: left + (ticksWide * plane) / fabric.planes,
      y: top,
      width: Math.max(1, ticksWide / fabric.planes - 1.5),
      height: wide ? 12 : tall ? 8 : 4,
    };
    return {
      back: svg("rect", { class: "tick", ...box }),
      bad: svg("rect", { class: fabric.transport === "rc" ? "bar paused-time" : "bar ev-assumed_bad", ...box, height: 0 }),
      box,
    };
  });
  const bar = svg("rect", { class: "load", x: left, y: y + part.h - 5, height: 2.5, width: 0 });
  const name = svg(
    "text",
    { class: "name", x: x + 5, y: y + (tall ? (wide ? 14 : 12) : 10), "font-size": wide ? 12 : 11 },
    part.id,
  );
  const element = svg(
    "g",
    { class: "nic" },
    svg("rect", { class: "shape", x, y, width: part.w, height: part.h, rx: 4 }),
    name,
    figure,
    letter,
    ...ticks.flatMap(tick => [tick.back, tick.bad]),
    tall ? bar : null,
  );
  return { element, letter, figure, ticks, bar, room: ticksWide, draw: drawNic };
}

/** What a NIC has in a plane, EVs or QPs, and the part of the tick that is not well: bad EVs, or paused time. */
function shareOf(nic, plane) {
  if (nic?.rc) return { all: nic.rc.ports[plane] || Number(nic.paused[plane] > 0), part: nic.paused[plane] };
  const evs = nic?.evs[plane] ?? {};
  const all = Object.values(evs).reduce((one, other) => one + other, 0);
  return { all, part: all ? (evs.assumed_bad ?? 0) / all : 0 };
}

function drawNic(own, snapshot, fabric) {
  const nic = snapshot?.nics[own.part.id];
  if (own.figure) write(own.figure, nic?.state === "up" ? rate(nic.goodput_bps) : "");
  mark(own.bar, "width", String(Math.round(own.room * Math.min(1, (nic?.goodput_bps ?? 0) / fabric.line_bps))));
  for (const [plane, tick] of own.ticks.entries()) {
    const { all, part } = shareOf(nic, plane);
    const high = all ? Math.ceil(tick.box.height * part) : 0;
    mark(tick.back, "class", !nic ? "tick" : nic.ports_up[plane] === false ? "tick dark" : all ? "tick used" : "tick");
    mark(tick.bad, "y", String(tick.box.y + tick.box.height - high));
    mark(tick.bad, "height", String(high));
  }
}
