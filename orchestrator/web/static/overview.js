// What the panel shows while no part is chosen: what is broken in the whole fabric, why, and how to mend it; below it
// what fabric this is.

import { html, keyed, mark, write } from "./elements.js";
import { faultLine, faultSays } from "./lines.js";
import { pauseRootsOf } from "./pauselist.js";
import { count, many, rate, span } from "./scales.js";
import { summed, troublesOf } from "./troubles.js";

const ROWS_MAX = 60;
const HINT =
  "Point at a link, a switch, a NIC or one of its ports, or walk there with the arrow keys; a click or Enter " +
  "shows it here, f fails it and h heals it.";

/** The overview of a fabric: {title, elements, draw(story)}; `choose(id)` goes to a part, `acts` heals. */
export function overviewOf(fabric, acts, choose) {
  const verdict = html("p", { class: "verdict" });
  const faults = html("ul", { class: "faults" });
  const parts = html("ul", { class: "troubles" });
  const more = html("p", { class: "soft" });
  const causes = html("h3", {}, "Faults, each with its remedy");
  const found = html("h3", {}, "Parts that are not up");
  const pauses = pauseRootsOf(choose);
  const draw = story => {
    const snapshot = story.snapshot;
    const troubles = snapshot ? troublesOf(snapshot) : [];
    const roots = troubles.filter(one => one.because === null);
    write(verdict, snapshot ? verdictOf(snapshot, troubles) : "Waiting for the first look.");
    mark(verdict, "data-state", !snapshot ? "unknown" : troubles.length || snapshot.faults.length ? "some" : "none");
    drawFaultLines(faults, snapshot?.faults ?? [], acts);
    keyed(
      parts,
      roots.slice(0, ROWS_MAX),
      one => one.id,
      one => makeRow(one, choose),
      (row, one) => fillRow(row, one, troubles),
    );
    pauses.draw(snapshot);
    causes.hidden = !snapshot?.faults.length;
    found.hidden = !roots.length;
    write(more, roots.length > ROWS_MAX ? `and ${count(roots.length - ROWS_MAX)} more` : "");
  };
  const elements = [verdict, causes, faults, found, parts, more, ...pauses.elements];
  return { elements: [...elements, html("p", { class: "soft hint" }, HINT), ...factsOf(fabric)], draw };
}

function drawFaultLines(list, faults, acts) {
  keyed(
    list,
    faults.slice(0, ROWS_MAX),
    fault => fault.id,
    fault => faultLine(fault, acts),
    (element, fault) => write(element.firstElementChild, faultSays(fault)),
  );
}

function verdictOf(snapshot, troubles) {
  if (troubles.length) return `✗ Not up: ${summed(troubles)}`;
  return snapshot.faults.length
    ? `Every part is up; ${many(snapshot.faults.length, "fault")} that cut nothing off`
    : "✓ Every part is up, and there is no fault";
}

function makeRow(one, choose) {
  return html(
    "li",
    {},
    html("span", { class: "state" }),
    html("button", { type: "button", class: "row-link", onclick: () => choose(one.id) }, one.id),
    html("span", { class: "soft" }),
  );
}

function fillRow(row, one, troubles) {
  const [state, , along] = row.children;
  write(state, one.state);
  mark(state, "data-state", one.state);
  const lost = troubles.filter(other => other.because === one.id).length;
  write(along, lost ? `and its ${many(lost, "link")}` : "");
}

function factsOf(fabric) {
  const switches = tier => fabric.switches.filter(one => one.tier === tier).length / fabric.planes;
  const facts = [
    ["planes", count(fabric.planes)],
    ["T0, T1 switches in each", `${count(switches("t0"))}, ${count(switches("t1"))}`],
    ["NICs, each with a port in every plane", count(fabric.nics.length)],
    ["rate of a link", rate(fabric.rate_bps)],
    ["RTT of the longest way at rest", span(fabric.base_rtt_ns)],
    fabric.transport === "rc"
      ? ["system", fabric.system]
      : ["EVs of a QP, in reserve", `${count(fabric.evs_per_qp)}, ${count(fabric.reserve_evs_per_qp)}`],
  ];
  const rows = facts.map(([what, figure]) => html("tr", {}, html("td", {}, what), html("td", {}, figure)));
  return [html("h3", {}, "This fabric"), html("table", {}, html("tbody", {}, ...rows))];
}
