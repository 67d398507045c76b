// The EVs of one QP, cell by cell: a row per plane, the reserve behind those in use. Each state has a shape of its own.
// What a cell is can be had by pointing at it, and by walking there with the arrow keys.

import { html, keyed, mark, svg, write } from "./elements.js";
import { keepingFocus } from "./focus.js";
import { count } from "./scales.js";
import { EV_STATES, EV_WORDS } from "./words.js";

const CELL = 10;
const STEP = 12;
const COLUMNS = [16, 32];
const LINES = 10; // of cells, of all planes together, for which there is room
const RESERVE_GAP = 6;
const SHAPES = {
  good: "M0 0h10v10h-10z",
  skip: "M0 5h10v5h-10z",
  assumed_bad: "M1 1L9 9M1 9L9 1",
  denied: "M0 5H10",
};

/**
 * The rows of an `evs` message: [{plane, cells: [{state, reserve, ev, path}], sums: {state: count}}] in order of plane.
 * Pure.
 */
export function rowsOf(message, letters) {
  const rows = new Map();
  for (const [place, letter] of [...message.states].entries()) {
    const plane = message.planes[place];
    if (!rows.has(plane))
      rows.set(plane, { plane, cells: [], sums: Object.fromEntries(EV_STATES.map(state => [state, 0])) });
    const row = rows.get(plane);
    const state = letters[letter.toUpperCase()];
    row.cells.push({
      state,
      reserve: letter !== letter.toUpperCase(),
      ev: message.evs[place],
      path: message.paths[place],
    });
    row.sums[state] += 1;
  }
  return [...rows.values()].sort((one, other) => one.plane - other.plane);
}

/** Of a NIC's QPs the one that has the most to tell: at work, and to a NIC below another T0. Pure. */
export function tellingOf(qps, nic, nics) {
  const t0Of = id => nics.find(one => one.id === id)?.t0;
  const works = qps.filter(qp => qp.state.toLowerCase() === "rts");
  return works.find(qp => qp.peer !== null && t0Of(qp.peer) !== t0Of(nic)) ?? works[0] ?? qps[0];
}

/** The strips below the map. `chosen(nic, qpn)` is told whose EVs are wanted, `qpsOf(nic)` answers with a NIC's QPs. */
export class Strips {
  constructor(root, chosen, qpsOf) {
    this._nic = root.querySelector("#strip-nic");
    this._qp = root.querySelector("#strip-qp");
    this._rows = root.querySelector("#ev-rows");
    this._sums = root.querySelector("#ev-sums");
    this._chosen = chosen;
    this._qpsOf = qpsOf;
    this._nic.addEventListener("change", () => this.follow(this._nic.value));
    this._qp.addEventListener("change", () => this._watch());
    this._rows.addEventListener("pointerover", event => this._point(event.target.closest(".cell")));
    this._rows.addEventListener("pointerleave", () => this._point(null));
    this._rows.addEventListener("focusin", event => this._focused(event.target));
    this._rows.addEventListener("focusout", () => this._point(null));
    this._rows.addEventListener("keydown", event => this._key(event));
  }

  show(fabric) {
    this._letters = fabric.ev_letters;
    this._nics = fabric.nics;
    this._nic.replaceChildren(...fabric.nics.map(nic => html("option", { value: nic.id }, nic.id)));
    this._known = "";
  }

  /** Take a snapshot: choose a NIC that has QPs while none is watched; ask again when a NIC has others than before. */
  update(snapshot) {
    const loaded = id => (snapshot.nics[id]?.qps ?? 0) > 0;
    if (!this._watched && !loaded(this._nic.value)) {
      const first = Object.keys(snapshot.nics).find(loaded);
      if (first) this._nic.value = first;
    }
    const known = `${this._nic.value} ${snapshot.nics[this._nic.value]?.qps ?? 0}`;
    if (known !== this._known) {
      this._known = known;
      this._fill();
    }
  }

  /** Show a NIC's EVs, as when it is chosen in the map. */
  follow(nic) {
    if (this._nic.value === nic && this._watched) return;
    this._nic.value = nic;
    this._known = "";
    this._watched = null;
    this._fill();
  }

  async _fill() {
    const nic = this._nic.value;
    const found = await this._qpsOf(nic).catch(() => []);
    if (nic !== this._nic.value) return;
    const before = this._qp.value;
    this._qp.replaceChildren(
      ...found.map(qp =>
        html(
          "option",
          { value: qp.qpn },
          `${qp.qpn} to ${qp.peer ?? "nobody"}${qp.state.toLowerCase() === "rts" ? "" : ` (${qp.state})`}`,
        ),
      ),
    );
    if (found.some(qp => String(qp.qpn) === before)) this._qp.value = before;
    else this._qp.value = tellingOf(found, nic, this._nics)?.qpn ?? "";
    this._watch();
  }

  _watch() {
    const wanted = this._qp.value === "" ? null : { nic: this._nic.value, qpn: Number(this._qp.value) };
    if (JSON.stringify(wanted) === JSON.stringify(this._watched) && wanted) return;
    this._watched = wanted;
    keepingFocus(() => this._rows.replaceChildren());
    this._text = wanted ? "Waiting for the EVs of this QP." : "No QP chosen: this NIC has none; EVs come with a workload.";
    write(this._sums, this._text);
    this._chosen(wanted);
  }

  /** Draw an `evs` message. */
  draw(message) {
    if (message.nic !== this._watched?.nic || message.qpn !== this._watched?.qpn) return;
    if (message.error || !message.states) {
      keepingFocus(() => this._rows.replaceChildren());
      this._text = message.error || "This QP has no EVs: it is not connected.";
      write(this._sums, this._text);
      return;
    }
    const rows = rowsOf(message, this._letters);
    const columns = columnsOf(rows);
    keyed(
      this._rows,
      rows,
      row => row.plane,
      makeRow,
      (element, row) => fillRow(element, row, columns),
    );
    this._reachable();
    const sums = EV_STATES.map(state => [state, rows.reduce((sum, row) => sum + row.sums[state], 0)]);
    this._text = sums.map(([state, number]) => `${count(number)} ${EV_WORDS[state]}`).join(", ");
    write(this._sums, this._pointed?.isConnected ? saysOf(this._pointed) : this._text);
  }

  /** One cell is in the order of tabs: the one that had the focus, else the first. */
  _reachable() {
    if (this._reached?.isConnected) return;
    this._reached = this._rows.querySelector(".cell");
    if (this._reached) mark(this._reached, "tabindex", "0");
  }

  _focused(cell) {
    if (cell !== this._reached) mark(this._reached, "tabindex", "-1");
    this._reached = cell;
    mark(cell, "tabindex", "0");
    this._point(cell);
  }

  _key(event) {
    const cells = this._rows.querySelectorAll(".cell");
    const next = nextCell(this._rows, event.target, event.key) ?? { Home: cells[0], End: cells[cells.length - 1] }[event.key];
    if (!next) return;
    event.preventDefault();
    next.focus();
  }

  _point(cell) {
    this._pointed = cell;
    write(this._sums, cell ? saysOf(cell) : (this._text ?? ""));
  }
}

const saysOf = cell => `plane ${cell.closest(".ev-row").dataset.plane}, ${cell.dataset.says}`;

/** The cell that an arrow key leads to from another, or undefined: along its row, or to the row of the plane beside. */
function nextCell(rows, from, key) {
  const row = from.closest(".ev-row");
  const own = [...row.querySelectorAll(".cell")];
  const place = own.indexOf(from);
  if (key === "ArrowLeft" || key === "ArrowRight") return own[place + (key === "ArrowRight" ? 1 : -1)] ?? from;
  if (key !== "ArrowUp" && key !== "ArrowDown") return undefined;
  const columns = Number(row.dataset.columns);
  const step = place + (key === "ArrowDown" ? columns : -columns);
  if (own[step]) return own[step];
  const all = [...rows.children];
  const other = all[all.indexOf(row) + (key === "ArrowDown" ? 1 : -1)]?.querySelectorAll(".cell");
  if (!other) return from;
  const column = place % columns;
  const last = column + Math.floor((other.length - 1 - column) / columns) * columns;
  return other[key === "ArrowDown" ? column : last] ?? other[other.length - 1];
}

function makeRow(row) {
  const cells = svg("svg", { role: "presentation" });
  return html("div", { class: "ev-row", role: "row" }, html("span", {}, String(row.plane)), cells, html("span", { class: "sum" }));
}

function fillRow(element, row, columns) {
  const cells = element.children[1];
  const places = placesOf(row.cells, columns);
  mark(cells, "viewBox", `0 0 ${places.width} ${places.height}`);
  mark(element, "data-columns", String(places.columns));
  mark(cells, "class", `wide-${Math.ceil(places.columns / 8)}`);
  while (cells.children.length > row.cells.length) cells.lastElementChild.remove();
  while (cells.children.length < row.cells.length) cells.append(svg("path", { role: "gridcell", tabindex: "-1" }));
  for (const [place, cell] of row.cells.entries()) {
    const path = cells.children[place];
    const use = cell.reserve ? "reserve" : "in use";
    const says = `EV 0x${cell.ev.toString(16)}, path ${cell.path}, ${EV_WORDS[cell.state]}, ${use}`;
    if (path.dataset.says === says) continue;
    path.dataset.says = says;
    mark(path, "aria-label", says);
    mark(path, "class", `cell ev-${cell.state}${cell.reserve ? " reserve" : ""}`);
    mark(path, "d", SHAPES[cell.state]);
    mark(path, "transform", `translate(${places.at[place].join(" ")})`);
  }
  for (const state of EV_STATES) mark(element, `data-${state}`, String(row.sums[state]));
  const { good, assumed_bad: bad, denied } = row.sums;
  const said = bad ? `${bad} bad` : denied ? `${denied} denied` : `${good} good`;
  write(element.children[2], said);
  mark(element, "data-plane", String(row.plane));
  mark(element, "data-trouble", String(bad > 0));
  mark(
    element,
    "aria-label",
    `plane ${row.plane}: ` + EV_STATES.map(state => `${row.sums[state]} ${EV_WORDS[state]}`).join(", "),
  );
}

/** How many cells stand side by side, so that the lines of all rows find room. Pure. */
export function columnsOf(rows) {
  const most = Math.max(...rows.map(row => row.cells.length));
  const lines = Math.max(1, Math.floor(LINES / rows.length));
  return Math.min(COLUMNS[1], Math.max(COLUMNS[0], Math.ceil(most / lines)));
}

function placesOf(cells, columns) {
  const oneLine = cells.length <= columns;
  const at = cells.map((cell, place) => {
    const gap = cell.reserve && oneLine ? RESERVE_GAP : 0;
    return [(place % columns) * STEP + gap, Math.floor(place / columns) * STEP];
  });
  const height = Math.ceil(cells.length / columns) * STEP - STEP + CELL;
  return { at, columns, width: columns * STEP + (oneLine ? RESERVE_GAP : 0), height };
}
