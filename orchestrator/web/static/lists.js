// The event log, the list of faults, and the tabs they stand in.

import { html, keyed, write } from "./elements.js";
import { count, instant, many } from "./scales.js";
import { faultLine, faultSays } from "./lines.js";
import { event } from "./words.js";

const LINES_MAX = 250;
const PAUSES = ["pause_begun", "pause_ended", "watchdog_fired", "watchdog_restored"];

/** Whether a line of the log is about a part. Pure. */
export function isAbout(line, part) {
  if (part === null) return false;
  if (part.kind === "plane") return line.plane === part.plane || new RegExp(`^p${part.plane}-`).test(line.node ?? "");
  if (part.kind === "port") return line.node === part.nic && (line.plane === part.plane || line.port === part.plane);
  if (part.kind === "link" && line.peer)
    return [`${line.node}~${line.peer}`, `${line.peer}~${line.node}`].includes(part.id);
  if (part.kind === "link") return (line.targets ?? []).some(target => target.replace(">", "~") === part.id);
  return line.node === part.id || (line.targets ?? []).includes(part.id);
}

/** The event log. */
export class EventLog {
  constructor(root, partOf) {
    this._lines = root.querySelector("#event-lines");
    this._filter = root.querySelector("#event-filter");
    this._follow = root.querySelector("#event-follow");
    this._count = root.querySelector("#event-count");
    this._partOf = partOf;
    this._filter.addEventListener("change", () => this.rewrite());
    this._none = root.querySelector("#no-events");
    this._follow.addEventListener("change", () => this._catchUp());
    this._lines.addEventListener("scroll", () => this._scrolled());
  }

  /** Take new lines of a story, or all of them with `rewrite`. */
  add(story, fresh) {
    this._story = story;
    this._append(fresh);
  }

  rewrite() {
    this._lines.replaceChildren();
    if (this._story) this._append(this._story.events);
  }

  _append(lines) {
    const wanted = lines.filter(line => this._wants(line)).slice(-LINES_MAX);
    this._lines.append(...wanted.map(rowOf));
    while (this._lines.children.length > LINES_MAX) this._lines.firstElementChild.remove();
    const { events, eventsDropped } = this._story;
    const [shown, all] = [this._lines.children.length, events.length];
    const gone = eventsDropped ? `, ${count(eventsDropped)} older ones gone` : "";
    write(this._count, (shown < all ? `${count(shown)} of ` : "") + many(all, "line") + gone);
    this._lines.hidden = shown === 0;
    this._none.hidden = shown > 0;
    this._catchUp();
  }

  _wants(line) {
    const wanted = this._filter.value;
    if (wanted === "part") return isAbout(line, this._partOf());
    if (wanted === "pause") return PAUSES.includes(line.kind);
    return wanted === "" || (wanted === "fault" ? line.kind.startsWith("fault") : line.kind === wanted);
  }

  _catchUp() {
    if (this._follow.checked) this._lines.scrollTop = this._lines.scrollHeight;
  }

  // Who goes back to read is not to be carried off by the next line; at the end the log follows again.
  _scrolled() {
    const { scrollTop, clientHeight, scrollHeight } = this._lines;
    this._follow.checked = scrollTop + clientHeight >= scrollHeight - 4;
  }
}

function rowOf(line) {
  const { node, what, why, section } = event(line);
  return html(
    "li",
    { "data-kind": line.kind },
    html("span", { class: "soft" }, instant(line.at_ns)),
    html("b", {}, node),
    html("span", { class: "soft section" }, section),
    html("p", {}, what, why ? html("span", { class: "soft" }, `: ${why}`) : null),
  );
}

/** The faults that are not over, and those that were. */
export function drawFaults(list, story, acts) {
  const all = [...story.faults.values()]
    .reverse()
    .sort((one, other) => (one.over_ns !== null) - (other.over_ns !== null));
  keyed(
    list,
    all.slice(0, LINES_MAX),
    fault => fault.id,
    fault => faultLine(fault, acts),
    (element, fault) => {
      const over = fault.over_ns !== null;
      element.classList.toggle("over", over);
      write(
        element.firstElementChild,
        `${instant(fault.start_ns)}  ${faultSays(fault)}${over ? `, over at ${instant(fault.over_ns)}` : ""}`,
      );
      element.lastElementChild.hidden = over;
    },
  );
  if (!all.length && !list.children.length)
    list.append(html("li", { class: "soft", "data-key": "none" }, "Nothing is broken, and nothing was."));
}

/** Make tabs of a tablist: a click, or the arrow keys. */
export function tabs(list) {
  const all = [...list.querySelectorAll('[role="tab"]')];
  const open = tab => {
    for (const one of all) {
      one.setAttribute("aria-selected", String(one === tab));
      one.tabIndex = one === tab ? 0 : -1;
      document.getElementById(one.getAttribute("aria-controls")).hidden = one !== tab;
    }
  };
  for (const [place, tab] of all.entries()) {
    tab.addEventListener("click", () => open(tab));
    tab.addEventListener("keydown", key => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[key.key];
      if (step === undefined) return;
      const next = all[(place + step + all.length) % all.length];
      open(next);
      next.focus();
    });
  }
}
