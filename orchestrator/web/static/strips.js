// The EVs of one QP, cell by cell: a row per plane, the reserve behind those in use. Each state has a shape of its own.

import { html, keyed, mark, svg, write } from "./elements.js";
import { count } from "./scales.js";
import { EV_STATES, EV_WORDS } from "./words.js";

const CELL = 10;
const STEP = 12;
const ROW_CELLS_MAX = 32;
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
    this._rows.replaceChildren();
    write(this._sums, wanted ? "" : "This NIC has no QP: EVs come with a workload.");
    this._chosen(wanted);
  }

  /** Draw an `evs` message. */
  draw(message) {
    if (message.nic !== this._watched?.nic || message.qpn !== this._watched?.qpn) return;
    if (message.error || !message.states) {
      this._rows.replaceChildren();
      this._text = message.error || "This QP has no EVs: it is not connected.";
      write(this._sums, this._text);
      return;
    }
    const rows = rowsOf(message, this._letters);
    keyed(this._rows, rows, row => row.plane, makeRow, fillRow);
    const sums = EV_STATES.map(state => [state, rows.reduce((sum, row) => sum + row.sums[state], 0)]);
    this._text = sums.map(([state, number]) => `${count(number)} ${EV_WORDS[state]}`).join(", ");
    if (!this._pointed) write(this._sums, this._text);
  }

  _point(cell) {
    this._pointed = cell;
    write(this._sums, cell?.dataset.says ?? this._text ?? "");
  }
}

function makeRow(row) {
  return html("div", { class: "ev-row", role: "img" }, html("span", {}, String(row.plane)), svg("svg"), html("output"));
}

function fillRow(element, row) {
  const cells = element.children[1];
  const places = placesOf(row.cells);
  mark(cells, "viewBox", `0 0 ${ROW_CELLS_MAX * STEP + RESERVE_GAP} ${places.height}`);
  while (cells.children.length > row.cells.length) cells.lastElementChild.remove();
  while (cells.children.length < row.cells.length) cells.append(svg("path"));
  for (const [place, cell] of row.cells.entries()) {
    const path = cells.children[place];
    const use = cell.reserve ? "reserve" : "in use";
    const says = `EV 0x${cell.ev.toString(16)}, path ${cell.path}, ${EV_WORDS[cell.state]}, ${use}`;
    if (path.dataset.says === says) continue;
    path.dataset.says = says;
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

function placesOf(cells) {
  const columns = Math.min(ROW_CELLS_MAX, cells.length);
  const at = cells.map((cell, place) => {
    const gap = cell.reserve && cells.length <= ROW_CELLS_MAX ? RESERVE_GAP : 0;
    return [(place % columns) * STEP + gap, Math.floor(place / columns) * STEP];
  });
  return { at, height: Math.ceil(cells.length / columns) * STEP - STEP + CELL };
}
