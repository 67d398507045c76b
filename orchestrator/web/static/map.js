// The picture of the planes: parts as elements that can be pointed at, reached by keys and read aloud, over the canvas
// of their links. Owns what is drawn, what is under the pointer and where the focus is; what a choice means is
// `app.js`'s.

import { Cables } from "./cables.js";
import { mark, svg, write } from "./elements.js";
import { layOut, partAt } from "./layout.js";
import { many, rate } from "./scales.js";
import { EV_STATES, NODE_LETTERS, called, doing, stateOf } from "./words.js";
import { walk } from "./walk.js";

const KEYS = ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "PageUp", "PageDown"];

/** The map in an element with a canvas, an svg and a tip; `chosen(part)` is told what the reader wants to see. */
export class FabricMap {
  constructor(root, chosen) {
    this._root = root;
    this._chosen = chosen;
    this._svg = root.querySelector("svg");
    this._tip = root.querySelector(".tip");
    this._cables = new Cables(root.querySelector("canvas"));
    this._elements = new Map();
    this.selected = null;
    this._current = null;
    this._via = null;
    this._svg.addEventListener("pointermove", event => this._hover(this._at(event)));
    this._svg.addEventListener("pointerleave", () => this._hover(null));
    this._svg.addEventListener("click", event => this._click(event));
    this._svg.addEventListener("keydown", event => this._key(event));
    this._svg.addEventListener("focusin", event => this._focused(event.target.closest("[data-part]")?.dataset.part));
    this._svg.addEventListener("focusout", () => this._tell(null));
    new ResizeObserver(() => this.show(this._fabric)).observe(root);
  }

  /** Take a fabric, or the same one in another size. */
  show(fabric) {
    if (!fabric) return;
    const had = document.activeElement?.closest("#map [data-part]")?.dataset.part;
    this._fabric = fabric;
    const { width, height } = this._root.getBoundingClientRect();
    if (width < 50 || height < 50) return;
    this.scene = layOut(fabric, width, height);
    mark(this._svg, "viewBox", `0 0 ${width} ${height}`);
    this._cables.show(this.scene);
    this._build();
    this.draw(this._snapshot ?? null);
    if (had) this.focus(had);
  }

  /** Draw a snapshot: only what differs from what is drawn. */
  draw(snapshot) {
    this._snapshot = snapshot;
    if (!this.scene) return;
    for (const own of this._elements.values()) this._drawPart(own, snapshot);
    this._cables.draw(snapshot);
    if (this._told) this._tell(this._told);
  }

  restyle() {
    this._cables.restyle();
    this.draw(this._snapshot ?? null);
  }

  /** Choose a part, as a click on it does; null: none. */
  select(part) {
    this.selected = part;
    this._tell(this._told ?? null);
    this._attend(part);
    this._ring(this._chosenRing, part);
    for (const own of this._elements.values()) mark(own.element, "aria-pressed", String(own.part.id === part?.id));
    this._chosen(part);
  }

  _attend(part) {
    this._cables.attend(part?.kind === "switch" || part?.kind === "port" ? part.id : null);
    this._cables.draw(this._snapshot ?? null);
  }

  /** Put the focus on a part. */
  focus(id) {
    this._elements.get(id)?.element.focus({ preventScroll: true });
  }

  // ---- building ----------------------------------------------------------------------------------------------------

  _build() {
    this._elements.clear();
    this._chosenRing = svg("path", { class: "ring chosen" });
    this._pointedRing = svg("path", { class: "ring pointed" });
    const groups = { plane: [], link: [], switch: [], port: [], nic: [] };
    for (const part of this.scene.parts.values()) {
      const own = BUILDERS[part.kind](part, this._fabric);
      own.part = part;
      for (const [name, value] of [
        ["data-part", part.id],
        ["role", "button"],
        ["tabindex", "-1"],
      ])
        mark(own.element, name, value);
      groups[part.kind].push(own.element);
      this._elements.set(part.id, own);
    }
    const { plane, link, ...others } = groups;
    this._svg.replaceChildren(...plane, ...link, this._chosenRing, this._pointedRing, ...Object.values(others).flat());
    const kept = this.scene.parts.get(this.selected?.id) ?? null;
    this.selected = kept;
    this._ring(this._chosenRing, kept);
    this._attend(kept);
    this._current = this._elements.has(this._current) ? this._current : this.scene.parts.keys().next().value;
    mark(this._elements.get(this._current).element, "tabindex", "0");
  }

  _drawPart(own, snapshot) {
    const state = stateOf(own.part, snapshot);
    if (state !== own.state) {
      own.state = state;
      mark(own.element, "aria-label", `${called(own.part)}, ${state}`);
      mark(own.element, "data-state", state);
      if (own.letter) write(own.letter, NODE_LETTERS[state] ?? "!");
    }
    own.draw?.(own, snapshot, this._fabric);
  }

  // ---- pointing ----------------------------------------------------------------------------------------------------

  _at(event) {
    const box = this._svg.getBoundingClientRect();
    return this.scene ? partAt(this.scene, event.clientX - box.left, event.clientY - box.top) : null;
  }

  _hover(part) {
    if (part?.id === this._hovered?.id) return;
    this._hovered = part;
    this._svg.classList.toggle("pointing", part !== null);
    this._ring(this._pointedRing, part);
    this._tell(part);
  }

  _click(event) {
    const part = this._at(event);
    if (part) this.focus(part.id);
    this.select(part);
  }

  _key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const id = event.target.closest("[data-part]")?.dataset.part;
    if (id === undefined) return;
    if (KEYS.includes(event.key)) {
      const next = walk(this.scene, id, event.key, this._via);
      if (next !== id)
        this._via =
          this.scene.parts.get(next).kind === "link" && this.scene.parts.get(id).kind === "link" ? this._via : id;
      this.focus(next);
    } else if (event.key === "Enter" || event.key === " ") {
      this.select(this.scene.parts.get(id));
    } else {
      return;
    }
    event.preventDefault();
  }

  _focused(id) {
    if (id === undefined) return;
    this._elements.get(this._current)?.element.setAttribute("tabindex", "-1");
    this._current = id;
    const { element, part } = this._elements.get(id);
    element.setAttribute("tabindex", "0");
    mark(element, "aria-label", `${called(part)}, ${doing(part, this._snapshot ?? null)}`);
    this._ring(this._pointedRing, part);
    this._tell(part);
  }

  /** The part that keys act on: the one with the focus, else the chosen one. */
  get current() {
    const id = document.activeElement?.closest?.("#map [data-part]")?.dataset.part;
    return this.scene?.parts.get(id) ?? this.selected;
  }

  _tell(part) {
    this._told = part;
    this._tip.hidden = part === null || part.id === this.selected?.id; // what is chosen is told in the panel
    if (this._tip.hidden) return;
    write(this._tip.firstElementChild, called(part));
    write(this._tip.lastElementChild, doing(part, this._snapshot ?? null));
    const left = Math.min(Math.max(part.x, 130), this.scene.width - 130);
    const below = part.y < 70;
    const y = part.kind === "link" ? part.y : part.y + (below ? part.h / 2 : -part.h / 2);
    const away = below ? "14px" : "calc(-100% - 14px)";
    this._tip.style.transform = `translate(${left}px, ${y}px) translate(-50%, ${away})`;
  }

  _ring(ring, part) {
    mark(ring, "d", part ? outline(part) : "");
    ring.classList.toggle("line", part?.kind === "link");
  }
}

function outline(part) {
  if (part.kind === "link") return `M${part.x1} ${part.y1}L${part.x2} ${part.y2}`;
  const box = part.panel
    ? { x: part.x, y: part.panel.y + part.panel.h / 2, w: part.panel.w - 10, h: part.panel.h - 10 }
    : part;
  const [w, h] = [box.w / 2 + 3, box.h / 2 + 3];
  return `M${box.x - w} ${box.y - h}h${2 * w}v${2 * h}h${-2 * w}z`;
}

// ---- one kind of part each: its elements, and how a snapshot changes them ------------------------------------------

const BUILDERS = { plane: buildPlane, link: buildLink, switch: buildSwitch, port: buildPort, nic: buildNic };

function buildPlane(part) {
  const { x, y, w, h } = part.panel;
  const says = svg("text", { class: "figure", x: x + w - 8, y: y + 16, "text-anchor": "end" });
  const bar = stateBar(x + 8, y + 21, w - 16, 2.5);
  const element = svg(
    "g",
    { class: "plane" },
    svg("rect", { class: "panel", x: x + 0.5, y: y + 0.5, width: w - 1, height: h - 1, rx: 5 }),
    svg("text", { class: "name", x: x + 8, y: y + 16 }, w < 120 ? String(part.plane) : `plane ${part.plane}`),
    says,
    ...bar.rects,
  );
  return { element, draw: (own, snapshot) => drawPlane(part, says, bar, snapshot) };
}

function drawPlane(part, says, bar, snapshot) {
  const plane = snapshot?.planes[part.plane];
  const dark = plane?.ports_down ? `${many(plane.ports_down, "port")} down · ` : "";
  write(says, plane ? (part.w > 200 ? dark : "") + rate(plane.goodput_bps) : "");
  bar.draw(plane ? [plane.evs] : []);
}

/** EVs by state side by side, as shares of `width`. */
function stateBar(x, y, width, height) {
  const rects = EV_STATES.map(state => svg("rect", { class: `ev-${state}`, y, height, x, width: 0 }));
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
      ? svg("text", { class: "index", "text-anchor": "middle", y: 3.5, "font-size": 10 }, String(part.index))
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
    part.w >= 108 ? svg("text", { class: "figure", x: x + part.w - 6, y: y + 14, "text-anchor": "end" }) : null;
  const letter = svg("text", {
    class: "letter",
    x: x + part.w - 6,
    y: y + (tall ? 14 : part.h - 4),
    "text-anchor": "end",
    "font-size": 12,
  });
  const [left, ticksWide, top] = [x + 4, part.w - 8, y + (wide ? 20 : tall ? 14 : part.h - 6)];
  const ticks = Array.from({ length: fabric.planes }, (_, plane) => {
    const box = {
      x: left + (ticksWide * plane) / fabric.planes,
      y: top,
      width: Math.max(1, ticksWide / fabric.planes - 1.5),
      height: wide ? 12 : tall ? 8 : 4,
    };
    return {
      back: svg("rect", { class: "tick", ...box }),
      bad: svg("rect", { class: "ev-assumed_bad", ...box, height: 0 }),
      box,
    };
  });
  const bar = svg("rect", { class: "load", x: left, y: y + part.h - 5, height: 2.5, width: 0 });
  const name = svg(
    "text",
    { class: "name", x: x + 5, y: y + (tall ? (wide ? 14 : 11) : 9), "font-size": wide ? 12 : 9 },
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

function drawNic(own, snapshot, fabric) {
  const nic = snapshot?.nics[own.part.id];
  if (own.figure) write(own.figure, nic?.state === "up" ? rate(nic.goodput_bps) : "");
  mark(own.bar, "width", String(Math.round(own.room * Math.min(1, (nic?.goodput_bps ?? 0) / fabric.line_bps))));
  for (const [plane, tick] of own.ticks.entries()) {
    const evs = nic?.evs[plane] ?? {};
    const all = Object.values(evs).reduce((one, other) => one + other, 0);
    const high = all ? Math.ceil((tick.box.height * (evs.assumed_bad ?? 0)) / all) : 0;
    mark(tick.back, "class", !nic ? "tick" : nic.ports_up[plane] === false ? "tick dark" : all ? "tick used" : "tick");
    mark(tick.bad, "y", String(tick.box.y + tick.box.height - high));
    mark(tick.bad, "height", String(high));
  }
}
