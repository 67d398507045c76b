// The picture of the planes: parts as elements that can be pointed at, reached by keys and read aloud, over the canvas
// of their links. Owns what is drawn, what is under the pointer and where the focus is; what a choice means is
// `app.js`'s.

import { Cables } from "./cables.js";
import { mark, svg, write } from "./elements.js";
import { layOut, partAt } from "./layout.js";
import { BUILDERS, alarmOf, arrows, outline } from "./shapes.js";
import { drawTrees, treePaths } from "./treepaths.js";
import { NODE_LETTERS, called, doing, stateOf } from "./words.js";
import { walk } from "./walk.js";

const KEYS = ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "PageUp", "PageDown"];

const TIP = 172; // half of the widest tip

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
    this._attend(this.selected);
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
    this._point(part);
    for (const own of this._elements.values()) mark(own.element, "aria-pressed", String(own.part.id === part?.id));
    this._chosen(part);
  }

  _attend(part) {
    const links = drawTrees(this._trees, this.scene, part, this._snapshot ?? null);
    this._cables.attend(part?.kind === "switch" || part?.kind === "port" ? part.id : null, links);
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
    this._arrows = svg("path", { class: "arrows" });
    this._trees = treePaths();
    this._alarms = svg("g", { class: "alarms" });
    this._alarmed = new Map();
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
    const nodes = Object.values(others).flat();
    const above = [this._chosenRing, this._pointedRing, ...nodes, this._trees.element, this._alarms, this._arrows];
    this._svg.replaceChildren(...plane, ...link, ...above);
    const kept = this.scene.parts.get(this.selected?.id) ?? null;
    this.selected = kept;
    this._ring(this._chosenRing, kept);
    this._point(kept);
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
      this._alarm(own.part, state);
    }
    own.draw?.(own, snapshot, this._fabric);
  }

  _alarm(part, state) {
    this._alarmed.get(part.id)?.remove();
    const alarm = alarmOf(part, state);
    if (alarm) this._alarms.append(alarm);
    this._alarmed.set(part.id, alarm);
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
    this._point(part);
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
    this._point(part);
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
    const left = Math.min(Math.max(part.x, TIP), this.scene.width - TIP);
    const below = part.y < 70;
    const y = part.kind === "link" ? part.y : part.y + (below ? part.h / 2 : -part.h / 2);
    const away = below ? "14px" : "calc(-100% - 14px)";
    this._tip.style.transform = `translate(${left}px, ${y}px) translate(-50%, ${away})`;
  }

  /** Show which side of a link is which direction: of the one that is pointed at, else of the one that is chosen. */
  _point(part) {
    const link = [part, this.selected].find(one => one?.kind === "link");
    mark(this._arrows, "d", link ? arrows(link, this.scene.lanes) : "");
  }

  _ring(ring, part) {
    mark(ring, "d", part ? outline(part) : "");
    ring.classList.toggle("line", part?.kind === "link");
  }
}
