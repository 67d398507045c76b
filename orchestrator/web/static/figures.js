// The figures of the part that is chosen, one sort of part each. Owns which figures there are and their tables.

import { html, keyed, mark, svg, write } from "./elements.js";
import { pausesOf } from "./pauses.js";
import { bytes, count, percent, rate } from "./scales.js";
import { LANE_POINTS_MAX, evSums } from "./story.js";
import { rcPlaneRows, rcPortRows, rcRows } from "./rc.js";
import { EV_STATES, EV_WORDS, directionFigures } from "./words.js";

/** The figures of a part: {elements, draw(story)}; `choose(id)` goes to another part. */
export function figuresOf(part, fabric, choose) {
  return FIGURES[part.kind](part, fabric, choose);
}

const FIGURES = { link: linkFigures, switch: switchFigures, nic: nicFigures, port: portFigures, plane: planeFigures };

function pairs(draw) {
  const body = html("tbody");
  return {
    elements: [html("table", {}, body)],
    draw: story => keyed(body, draw(story), row => row[0], makeRow, fillRow),
  };
}

function makeRow(row) {
  return html("tr", {}, ...row.map(() => html("td")));
}

function fillRow(element, row) {
  for (const [place, cell] of row.entries()) {
    if (typeof cell === "string") write(element.children[place], cell);
    else if (!element.children[place].firstElementChild) element.children[place].replaceChildren(cell);
  }
}

function linkFigures(part, fabric) {
  const link = fabric.links.find(one => one.id === part.id);
  const body = html("tbody");
  const spark = {
    up: svg("path", { "data-place": 0, fill: "none" }),
    down: svg("path", { "data-place": 1, fill: "none", "stroke-dasharray": "4 3" }),
  };
  const head = html(
    "thead",
    {},
    html("tr", {}, html("th", {}, rate(link.rate_bps)), html("th", {}, "up"), html("th", {}, "down")),
  );
  const picture = svg(
    "svg",
    {
      id: "spark",
      viewBox: `0 0 ${LANE_POINTS_MAX} 40`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": "Utilisation of late",
    },
    spark.up,
    spark.down,
  );
  const draw = story => {
    const seen = story.snapshot.links[part.id];
    if (!seen) return;
    const [up, down] = [directionFigures(seen.up), directionFigures(seen.down)];
    keyed(
      body,
      [...up.map(([what, figure], place) => [what, figure, down[place][1]]), ...pausedRows(story.snapshot, part.id)],
      row => row[0],
      makeRow,
      fillRow,
    );
    for (const way of ["up", "down"]) mark(spark[way], "d", sparkLine(story.lanes.get(part.id)[way]));
  };
  return {
    elements: [html("table", {}, head, body), html("h3", {}, "Utilisation of late: up solid, down dashed"), picture],
    draw,
  };
}

/** A row for each class that is paused in a direction of a link. Pure. */
export function pausedRows(snapshot, id) {
  const { up, down } = pausesOf(snapshot, id);
  const says = (pauses, cls) => {
    const one = pauses.find(pause => pause.cls === cls);
    return one ? `${percent(one.share)}, ${count(one.frames)} frames` : "-";
  };
  const classes = [...new Set([...up, ...down].map(pause => pause.cls))].sort();
  return classes.map(cls => [`paused, class ${cls}`, says(up, cls), says(down, cls)]);
}

const evRows = sums =>
  EV_STATES.map(state => [`EVs ${EV_WORDS[state]}`, `${count(sums[state])} of ${count(sums.all)}`]);

/** What a UET NIC has where others have EVs. */
const uetRows = uet => [
  ["contexts, at targets", `${count(uet.initiators)}, ${count(uet.targets)}`],
  ["entropies", count(uet.drawn)],
  ["sit out turns, kept", `${count(uet.resting)}, ${count(uet.kept)}`],
  ["choices frozen, planes left", `${count(uet.frozen)}, ${count(uet.planes_left)}`],
];

function sparkLine(ring) {
  const points = Array.from(
    { length: ring.length },
    (_, place) => `${LANE_POINTS_MAX - ring.length + place} ${(39 - 38 * Math.min(1, ring.at(place))).toFixed(1)}`,
  );
  return points.length > 1 ? `M${points.join("L")}` : "";
}

function cablesOf(fabric, nodes, choose) {
  const links = fabric.links.filter(link => nodes.includes(link.a) || nodes.includes(link.b));
  const body = html("tbody");
  const head = html(
    "thead",
    {},
    html("tr", {}, ...["to", "state", "out", "in", "queue", "drops"].map(word => html("th", {}, word))),
  );
  const rowOf = (link, snapshot) => {
    const seen = snapshot.links[link.id];
    const [out, back] = nodes.includes(link.a) ? [seen?.up, seen?.down] : [seen?.down, seen?.up];
    const peer = nodes.includes(link.a) ? link.b : link.a;
    const go = html("button", { type: "button", class: "row-link", onclick: () => choose(link.id) }, peer);
    return seen
      ? [
          go,
          seen.state,
          percent(out.utilisation),
          percent(back.utilisation),
          bytes(out.queue_bytes),
          count(out.drops + back.drops),
        ]
      : [go, "", "", "", "", ""];
  };
  const draw = story =>
    keyed(
      body,
      links.map(link => ({ id: link.id, row: rowOf(link, story.snapshot) })),
      one => one.id,
      one => makeRow(one.row),
      (element, one) => fillRow(element, one.row),
    );
  return { elements: [html("h3", {}, many(links.length)), html("table", {}, head, body)], draw };
}

const many = links => (links === 1 ? "1 port" : `${links} ports`);

function both(one, other) {
  return {
    elements: [...one.elements, ...other.elements],
    draw: story => {
      one.draw(story);
      other.draw(story);
    },
  };
}

function switchFigures(part, fabric, choose) {
  const own = pairs(story => {
    const seen = story.snapshot.switches[part.id];
    return seen ? [["drops since the look before", count(seen.drops)]] : [];
  });
  return both(own, cablesOf(fabric, [part.id], choose));
}

function nicFigures(part, fabric, choose) {
  const own = pairs(story => {
    const nic = story.snapshot.nics[part.id];
    if (!nic) return [];
    const sums = evSums(nic.evs);
    return [
      ["goodput", `${rate(nic.goodput_bps)} of ${rate(fabric.line_bps)}`],
      ["QPs, in error", `${count(nic.qps)}, ${count(nic.qp_errors)}`],
      ["retransmitted since the look before", count(nic.retransmits)],
      ...(nic.rc ? rcRows(nic) : nic.uet ? uetRows(nic.uet) : evRows(sums)),
    ];
  });
  return both(own, cablesOf(fabric, [part.id], choose));
}

function portFigures(part, fabric, choose) {
  const link = fabric.links.find(one => one.a === part.nic && one.plane === part.plane);
  const own = pairs(story => {
    const nic = story.snapshot.nics[part.nic];
    if (!nic) return [];
    const sums = evSums([nic.evs[part.plane] ?? {}]);
    return [
      ["carrier", nic.ports_up[part.plane] ? "yes" : "no"],
      ...(nic.rc ? rcPortRows(nic, part.plane) : nic.uet ? [] : evRows(sums)),
    ];
  });
  const cable = html(
    "p",
    {},
    "Its cable is ",
    html("button", { type: "button", class: "row-link", onclick: () => choose(link.id) }, link.id),
    ".",
  );
  return { elements: [cable, ...own.elements], draw: own.draw };
}

function planeFigures(part, fabric) {
  return pairs(story => {
    const plane = story.snapshot.planes[part.plane];
    if (!plane) return [];
    const sums = evSums([plane.evs]);
    const links = fabric.links
      .filter(link => link.plane === part.plane)
      .map(link => story.snapshot.links[link.id]?.state);
    const switches = fabric.switches
      .filter(one => one.plane === part.plane)
      .map(one => story.snapshot.switches[one.id]?.state);
    return [
      ["goodput", rate(plane.goodput_bps)],
      ["NIC ports without carrier", `${count(plane.ports_down)} of ${count(fabric.nics.length)}`],
      ["links down, impaired", `${inState(links, "down")}, ${inState(links, "impaired")} of ${count(links.length)}`],
      [
        "switches not up",
        `${count(switches.filter(state => state && state !== "up").length)} of ${count(switches.length)}`,
      ],
      ...(fabric.transport === "rc"
        ? rcPlaneRows(story.snapshot, part.plane)
        : fabric.transport === "uet"
          ? []
          : evRows(sums)),
    ];
  });
}

const inState = (states, wanted) => count(states.filter(state => state === wanted).length);
