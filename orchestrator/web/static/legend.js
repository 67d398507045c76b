// What colours, dashes and letters mean: the line below the map, and the help.

import { html, svg } from "./elements.js";
import { UTILISATION_WORDS } from "./scales.js";

const PATHS = {
  down: "M1 6H9M13 6H21M8 3L14 9M8 9L14 3",
  impaired: "M1 6H3M5 6H7M15 6H17M19 6H21",
  paused: "M1 6H6M19 6H21M10 2V10M14 2V10",
};

function picture(...children) {
  return svg("svg", { viewBox: "0 0 22 12" }, ...children);
}

function key(shape, words) {
  return html("span", {}, shape, words);
}

const WIDTHS = [0.8, 1.2, 1.5, 1.8, 2.2, 2.6, 3];

function line(place) {
  return svg("path", { d: "M1 6H21", class: `u${place}`, "stroke-width": WIDTHS[place] });
}

function cell(state, shape) {
  return svg("path", { class: `cell ev-${state}`, d: shape, transform: "translate(6 1)" });
}

function ways() {
  const arrows = "M8 11V2M5.5 5L8 1.5L10.5 5M14 1V10M11.5 7L14 10.5L16.5 7";
  return svg("path", { d: arrows, fill: "none", stroke: "currentColor", "stroke-width": 1.3 });
}

const evKeys = () => [
  key(picture(cell("good", "M0 0h10v10h-10z")), "EV good"),
  key(picture(cell("skip", "M0 5h10v5h-10z")), "skip"),
  key(picture(cell("assumed_bad", "M1 1L9 9M1 9L9 1")), "assumed bad"),
  key(picture(cell("denied", "M0 5H10")), "denied"),
];

const rcKeys = () => [
  key(picture(cell("good", "M0 0h10v10h-10z")), "NIC with QPs in a plane"),
  key(picture(svg("rect", { class: "paused-time", x: 6, y: 3, width: 10, height: 7 })), "part of its time paused"),
];

/** Fill the legend; `fabric`: what `/api/fabric` says, null before it does. */
export function legend(root, fabric = null) {
  root.replaceChildren(
    ...[0, 2, 4, 6].map(place => key(picture(line(place)), UTILISATION_WORDS[place])),
    key(picture(ways()), "left line up, right line down"),
    key(picture(svg("path", { d: PATHS.down, class: "dead", "stroke-width": 1.8 })), "link down"),
    key(
      picture(
        svg("path", { d: PATHS.impaired, class: "u3", "stroke-width": 1.8 }),
        svg("path", { class: "ev-skip", d: "M11 2L15 6L11 10L7 6z" }),
      ),
      "impaired",
    ),
    ...(fabric?.lossless
      ? [key(picture(svg("path", { d: PATHS.paused, class: "paused", "stroke-width": 1.8 })), "paused (PFC)")]
      : []),
    ...(fabric?.transport === "rc" ? rcKeys() : evKeys()),
    key("", "○ T1  □ T0  × down  F frozen  ? silent  ● drops"),
    key(picture(svg("rect", { class: "load", x: 1, y: 5, width: 20, height: 3 })), "NIC's goodput"),
  );
}

const KEYS = [
  ["← → ↑ ↓", "walk along the rows and the cables; on a link, left and right go to the others of the same node"],
  ["Page Up, Page Down", "the same part of the plane before or after"],
  ["Enter, Space", "choose the part: its figures, and what can be done to it"],
  ["f", "fail the part with the kind that the panel shows for such parts"],
  ["h", "heal whatever is broken about the part"],
  ["Esc", "choose nothing: the panel shows what is broken in the whole fabric"],
  ["Tab", "to the next box; the arrow keys walk in it: the EVs of a QP, the chart, the tabs"],
  ["m", "to the map"],
  ["e, b, r", "events, faults (what is broken), run a scenario"],
  ["t", "light or dark"],
  ["?", "this help"],
];

/** Fill the help. */
export function help(dialog) {
  const row = ([keys, what]) =>
    html(
      "tr",
      {},
      html("td", {}, ...keys.split(", ").flatMap((one, place) => [place ? " " : "", html("kbd", {}, one)])),
      html("td", {}, what),
    );
  dialog.replaceChildren(
    html("h2", { id: "help-title" }, "Help"),
    html("table", {}, html("tbody", {}, ...KEYS.map(row))),
    html("h3", {}, "The picture"),
    html(
      "p",
      {},
      "Each plane stands by itself: T1s above, T0s below them, the NICs' ports at the bottom; the tiles below are the " +
        "NICs with all their planes. A link is two lines, one for each direction: looking up along it, the left one " +
        "goes up, away from the NICs, the right one down. The more of its rate is used, the thicker and darker (in " +
        "the dark: the brighter) the line. The links of the part that is chosen stand out from the others.",
    ),
    html(
      "p",
      {},
      "The bar in a plane's head, and the columns of a NIC's tile, plane by plane, show EVs by state; ✗ and a number " +
        "in a plane's head: so many of its parts are not up. The bar below a NIC's columns: its goodput as a share " +
        "of all its links. All times are fabric time, so are rates and RTTs.",
    ),
    html(
      "p",
      {},
      "Where switches pause instead of dropping (PFC), a direction whose sender is paused is drawn with dashes and dots " +
        "and two bars, the thicker the longer it was paused. Choose it, or a node, and the map shows who paused whom: " +
        "arrows point at those who are paused, a double ring stands around the reason, a single one around each node " +
        "that waits at the end. The panel says the same in words.",
    ),
    html("form", { method: "dialog" }, html("button", {}, "Close")),
  );
}
