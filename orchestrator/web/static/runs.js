// A scenario run from the page: chosen, started, watched line by line, ended.

import { html, write } from "./elements.js";
import { instant, many, rate, shortened } from "./scales.js";
import { withToken } from "./wire.js";

const LINES_MAX = 400;

/** A line of `mrcfabric run --json` in words, or null for one that is only a look. Pure. */
export const told = line => WORDS[line.event]?.(line) ?? null;

const WORDS = {
  begin: ({ name, programs, faults, expectations }) =>
    `${name}: ${many(programs.length, "program")}, ${many(faults.length, "fault")}, ` +
    many(expectations.length, "expectation"),
  fault: line =>
    `${line.phase}: ${line.title || line.kind} ${shortened(line.targets)}${line.why ? ` (${line.why})` : ""}`,
  step: line => `${line.program}: step ${line.finished} finished`,
  trigger: line => `${line.name}: ${line.condition} has come true`,
  finding: line => `${line.held === null ? "?" : line.held ? "✓" : "✗"} ${line.text}`,
  end: line =>
    [line.verdict ? `verdict: ${line.verdict}` : "ended", line.reasons.join("; ")].filter(Boolean).join(": "),
};

/** The box. `acts` does what the reader asks: {run(body), endRun(), readonly}. */
export class RunBox {
  constructor(root, acts) {
    this._scenario = root.querySelector("#run-scenario");
    this._description = root.querySelector("#run-description");
    this._seed = root.querySelector("#run-seed");
    this._start = root.querySelector("#run-start");
    this._stop = root.querySelector("#run-stop");
    this._state = root.querySelector("#run-state");
    this._lines = root.querySelector("#run-lines");
    this._acts = acts;
    this._going = false;
    this._number = null;
    this._scenario.addEventListener("change", () => this._describe());
    root.querySelector("#run-form").addEventListener("submit", submit => {
      submit.preventDefault();
      acts.run({
        scenario: this._scenario.value,
        ...(this._seed.value.trim() ? { seed: this._seed.value.trim() } : {}),
      });
    });
    this._stop.addEventListener("click", () => acts.endRun());
  }

  show(scenarios) {
    this._scenarios = scenarios;
    const sorted = [...scenarios].sort((one, other) => other.fits - one.fits);
    this._scenario.replaceChildren(
      ...sorted.map(one => html("option", { value: one.id }, one.fits ? one.name : `${one.name} (does not fit)`)),
    );
    this._describe();
  }

  _describe() {
    const one = this._scenarios.find(scenario => scenario.id === this._scenario.value);
    write(
      this._description,
      one ? (one.fits ? one.description : `Does not fit this fabric: ${one.why}`) : "There are no scenarios to run.",
    );
    this._start.disabled = this._acts.readonly || this._going || !one?.fits;
  }

  /** Take a `run` message. */
  take(message) {
    const run = message.run;
    if (run === null) return;
    if (run.number !== this._number) this._lines.replaceChildren();
    this._number = run.number;
    this._going = run.phase !== "ended";
    this._stop.disabled = this._acts.readonly || !this._going;
    for (const line of message.lines) this._add(line);
    this._say(run);
    if (this._scenarios) this._describe();
  }

  _add(line) {
    if (line.event === "look") {
      this._look = `${instant(line.at_ns)}, ${rate(line.goodput_gbps * 1e9)}`;
      return;
    }
    const text = told(line);
    if (text === null) return;
    this._lines.append(
      html("li", { "data-event": line.event }, html("span", { class: "soft" }, `${instant(line.at_ns)}  `), text),
    );
    while (this._lines.children.length > LINES_MAX) this._lines.firstElementChild.remove();
    this._lines.scrollTop = this._lines.scrollHeight;
  }

  _say(run) {
    const now = this._going
      ? `${run.phase}${this._look ? `, ${this._look}` : ""}`
      : run.error || run.verdict || "ended";
    const text = `${run.name}: ${now}`;
    if (this._state.dataset.says === text + run.report) return;
    this._state.dataset.says = text + run.report;
    this._state.replaceChildren(html("span", { "data-verdict": run.verdict ?? "" }, text));
    if (run.report)
      this._state.append(" ", html("a", { href: withToken("api/runs/report"), target: "_blank", rel: "noopener" }, "report"));
  }
}
