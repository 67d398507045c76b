// The part that is chosen: its figures, the faults on it, and the means to break and heal it; none: the whole fabric.

import { html, keyed, mark, write } from "./elements.js";
import { figuresOf } from "./figures.js";
import { faultLine, faultSays } from "./lines.js";
import { overviewOf } from "./overview.js";
import { pauseTreesOf } from "./pauselist.js";
import { faultsOn, isNamed } from "./story.js";
import { called, stateOf } from "./words.js";

/** The kinds of the catalogue that can hit a part, the usual one first. Pure. */
export function kindsFor(part, kinds) {
  const targets = {
    link: ["link"],
    switch: ["switch", "node"],
    nic: ["nic", "node"],
    port: ["nic-port"],
    plane: ["plane"],
  }[part.kind];
  const usual = {
    link: "link_down",
    switch: "switch_crash",
    nic: "nic_crash",
    port: "nic_port_down",
    plane: "plane_down",
  }[part.kind];
  const fitting = kinds.filter(
    kind => targets.includes(kind.target) && (kind.kind !== "t0_down" || part.tier === "t0"),
  );
  return fitting.sort((one, other) => (other.kind === usual) - (one.kind === usual));
}

/** How the target of a fault on a part is spelled; `way`, of links: both, up or down. Pure. */
export function targetOf(part, way = "both") {
  if (part.kind === "plane") return String(part.plane);
  if (part.kind !== "link" || way === "both") return part.id;
  const [a, b] = part.id.split("~");
  return way === "up" ? `${a}>${b}` : `${b}>${a}`;
}

/** What a form says about a fault, as `/api/faults` takes it. Pure; raises Error with words for the reader. */
export function faultOf(part, kind, way, texts, forText) {
  const figures = {};
  for (const figure of kind.figures) {
    const text = (texts[figure.name] ?? "").trim();
    if (text === "" && figure.required) throw new Error(`${kind.kind} needs ${figure.name}`);
    if (text !== "") figures[figure.name] = valueOf(figure, text);
  }
  const body = { kind: kind.kind, targets: [targetOf(part, way)], figures };
  if (forText.trim() !== "") body.for_ns = Math.round(numberOf("the time", forText) * 1000);
  return body;
}

function valueOf(figure, text) {
  return typeof figure.default === "boolean" ? text === "true" || text === "on" : numberOf(figure.name, text);
}

function numberOf(name, text) {
  const value = Number(text);
  if (!Number.isFinite(value)) throw new Error(`${name} is to be a number, not ${text}`);
  return value;
}

/** The panel. `acts` breaks and heals: {fail(body), heal(path), readonly}; `choose(id)` goes to another part. */
export class Panel {
  constructor(root, acts, choose) {
    this._title = root.querySelector("#panel-title");
    this._body = root.querySelector("#panel-body");
    this._acts = acts;
    this._choose = choose;
    this._kindOf = new Map();
  }

  show(fabric, kinds) {
    this._fabric = fabric;
    this._kinds = kinds;
    this.choose(null);
  }

  /** Another part is chosen; null: none. */
  choose(part) {
    this._part = part;
    this._draw = null;
    if (part === null) this._buildOverview();
    else this._build(this._makeActions(part), html("ul", { class: "faults" }), html("div", { class: "figures" }));
  }

  _buildOverview() {
    write(this._title, "Nothing chosen: the whole fabric");
    this._overview = overviewOf(this._fabric, this._acts, this._choose);
    this._body.replaceChildren(...this._overview.elements);
  }

  _build(...children) {
    write(this._title, called(this._part));
    this._body.replaceChildren(...children);
    this._state = html("span", { class: "state" });
    this._title.append(this._state);
    this._figures = figuresOf(this._part, this._fabric, this._choose);
    this._pauses = pauseTreesOf(this._part, this._choose);
    this._body.querySelector(".figures").append(...this._pauses.elements, ...this._figures.elements);
  }

  /** Bring the panel up to date. */
  draw(story) {
    if (this._part === null) this._overview?.draw(story);
    if (this._part === null || !story.snapshot) return;
    const state = stateOf(this._part, story.snapshot);
    write(this._state, state);
    mark(this._state, "data-state", state);
    const here = faultsOn(story.snapshot, this._part);
    this._heal.disabled = this._acts.readonly || !here.some(fault => isNamed(fault, this._part));
    keyed(
      this._body.querySelector(".faults"),
      here,
      fault => fault.id,
      fault => faultLine(fault, this._acts),
      (element, fault) => write(element.firstElementChild, faultSays(fault)),
    );
    this._pauses.draw(story);
    this._figures.draw(story);
  }

  // ---- break and heal ----------------------------------------------------------------------------------------------

  _makeActions(part) {
    const kinds = kindsFor(part, this._kinds);
    const choice = html(
      "select",
      { "aria-label": "Kind of fault", onchange: () => this._chooseKind(kinds) },
      ...kinds.map(kind => html("option", { value: kind.kind }, kind.kind)),
    );
    const way =
      part.kind === "link"
        ? html(
            "select",
            { "aria-label": "Direction", name: "way" },
            ...["both", "up", "down"].map(word =>
              html("option", { value: word }, word === "both" ? "both ways" : word),
            ),
          )
        : null;
    const off = this._acts.readonly;
    this._form = html(
      "form",
      {
        onsubmit: event => {
          event.preventDefault();
          this.fail(part);
        },
      },
      choice,
      html("button", { class: "fail", type: "submit", disabled: off, title: "f" }, "Fail"),
      html(
        "button",
        { class: "heal", type: "button", disabled: true, title: "h", onclick: () => this.heal(part) },
        "Heal",
      ),
      html(
        "p",
        {},
        way,
        " for ",
        html("input", { name: "for", placeholder: "until healed", "aria-label": "microseconds of fabric time" }),
        " us",
      ),
      html("p", { class: "soft meaning" }),
      html("p", { class: "asked" }),
      off
        ? html("p", { class: "soft" }, "Only to look at: open the address that the command printed to break and heal.")
        : null,
    );
    this._heal = this._form.querySelector(".heal");
    this._choice = choice;
    choice.value = this._kindOf.get(part.kind) ?? kinds[0].kind;
    this._chooseKind(kinds);
    return this._form;
  }

  _chooseKind(kinds) {
    const kind = kinds.find(one => one.kind === this._choice.value);
    this._kindOf.set(this._part.kind, kind.kind);
    write(this._form.querySelector(".meaning"), kind.meaning);
    this._form.querySelector(".asked").replaceChildren(
      ...kind.figures.map(figure =>
        html(
          "label",
          { title: figure.meaning },
          `${figure.name} `,
          html("input", {
            name: figure.name,
            placeholder: figure.default ?? (figure.required ? "needed" : "as it is"),
          }),
          " ",
        ),
      ),
    );
  }

  /** Break a part with the kind that its sort was last broken with. */
  fail(part) {
    if (part.id !== this._part?.id) this._choose(part.id);
    const kind = this._kinds.find(one => one.kind === this._choice.value);
    const texts = Object.fromEntries(
      [...this._form.elements].filter(one => one.name).map(one => [one.name, one.value]),
    );
    return this._acts.fail(() => faultOf(part, kind, texts.way ?? "both", texts, texts.for));
  }

  /** Heal all that is broken about a part. */
  heal(part) {
    return this._acts.heal(`api/faults?target=${encodeURIComponent(targetOf(part))}`);
  }
}
