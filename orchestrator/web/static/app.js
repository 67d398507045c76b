// The page: brings together what the server tells, what the reader does, and the views. Owns the order of things only.

import { Chart } from "./chart.js";
import { mark, write } from "./elements.js";
import { keepingFocus } from "./focus.js";
import { help, legend } from "./legend.js";
import { EventLog, drawFaults, tabs } from "./lists.js";
import { FabricMap } from "./map.js";
import { Panel } from "./panel.js";
import { QpTable, rcErrors } from "./rc.js";
import { RunBox } from "./runs.js";
import { count, fewLooks, instant, percent, rate } from "./scales.js";
import { Story, evSums, fabricOf } from "./story.js";
import { Strips } from "./strips.js";
import { theme } from "./theme.js";
import { Refused, Stream, act, read, takeToken } from "./wire.js";

const SAID_MS = 6000;
const byId = id => document.getElementById(id);

const token = takeToken();
let story = null;
let drawing = false;
let drawnFaults = null;
let lookHz = null;
let stream = null;

const acts = {
  readonly: token === "",
  fail: make =>
    attempt(async () => {
      const { fault } = await act("POST", "api/faults", token, make());
      return `${fault.kind} on ${fault.targets.join(" ")} is ${fault.id}`;
    }),
  heal: path =>
    attempt(async () => {
      const { healed } = await act("DELETE", path, token);
      return healed.length ? `healed: ${healed.join(" ")}` : "there was nothing to heal";
    }),
  run: body => attempt(async () => `${(await act("POST", "api/runs", token, body)).run.name} is being run`),
  endRun: () => attempt(async () => `${(await act("DELETE", "api/runs", token)).run.name} is being ended`),
};

const map = new FabricMap(byId("map"), chosen);
const chart = new Chart(byId("chart"), byId("plane-keys"), byId("reading"));
let strips = null;
const panel = new Panel(byId("panel"), acts, choose);
const log = new EventLog(byId("events"), () => map.selected);
const runs = new RunBox(byId("run"), acts);
const colours = theme(() => {
  map.restyle();
  chart.restyle();
});

function choose(id) {
  map.select(map.scene.parts.get(id) ?? null);
}

function chosen(part) {
  keepingFocus(() => panel.choose(part));
  if (story) panel.draw(story);
  if (part?.kind === "nic") strips?.follow(part.id);
  if (part?.kind === "port") strips?.follow(part.nic);
  if (byId("event-filter").value === "part") log.rewrite();
}

// ---- what the server tells ------------------------------------------------------------------------------------------

const hear = {
  snapshot: ({ snapshot, look_hz }) => {
    lookHz = look_hz;
    if (story.take(snapshot)) draw();
    notice("");
  },
  events: ({ events }) => {
    log.add(story, story.tell(events));
    if (story.snapshot) draw();
  },
  evs: message => strips.draw(message),
  run: message => keepingFocus(() => runs.take(message)),
  error: ({ error }) => notice(`The fabric does not answer: ${error}`),
};

async function begin() {
  const told = await read("api/fabric");
  const [history, kinds, scenarios] = await Promise.all([
    read("api/history"),
    read("api/kinds"),
    read("api/scenarios"),
  ]);
  const fabric = fabricOf(told);
  story = new Story(fabric);
  story.recall(history);
  document.title = `${fabric.name}: live map`;
  write(byId("name"), fabric.name);
  write(byId("system"), fabric.system);
  legend(byId("legend"), fabric);
  byId("event-filter").querySelector('[value="pause"]').hidden = !fabric.lossless;
  panel.show(fabric, kinds);
  chart.show(fabric);
  strips ??= stripsOf(fabric);
  strips.show(fabric);
  write(byId("bad-evs").previousElementSibling, fabric.transport === "rc" ? "QPs in error" : "EVs assumed bad");
  runs.show(scenarios);
  map.show(fabric);
  stream = new Stream(message => hear[message.type]?.(message), connection);
}

/** What stands below the map: the EVs of a QP, or where there are none the QPs of a NIC. */
function stripsOf(fabric) {
  const qpsOf = nic => read(`api/qps/${nic}`);
  if (fabric.transport === "rc") return new QpTable(byId("strips"), qpsOf);
  return new Strips(byId("strips"), qp => stream?.watch(qp ? [qp] : []), qpsOf);
}

async function connection(state) {
  const before = byId("link-state").dataset.state;
  if (state === before) return;
  write(byId("link-state"), state === "live" ? "live" : "lost");
  byId("link-state").dataset.state = state;
  document.body.classList.toggle("stale", state !== "live");
  notice(state === "live" ? "" : "The server does not answer. The picture is the last one; the page goes on trying.");
  if (state === "live" && before === "lost") {
    const told = await read("api/fabric").catch(() => null);
    if (told && told.version !== story.fabric.version) location.reload();
  }
}

function notice(text) {
  write(byId("notice"), text);
  byId("notice").hidden = text === "";
}

// ---- drawing: at most once a frame, and only in a page that is seen -------------------------------------------------

function draw() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    keepingFocus(drawAll);
  });
}

function drawAll() {
  drawStatus(story.snapshot);
  map.draw(story.snapshot);
  chart.draw(story);
  strips.update(story.snapshot);
  panel.draw(story);
  const faults = [...story.faults.values()].map(fault => `${fault.id} ${fault.over_ns} ${fault.in_force}`).join();
  if (faults !== drawnFaults) drawFaults(byId("fault-list"), story, acts);
  drawnFaults = faults;
}

function drawStatus(seen) {
  const few = fewLooks(lookHz, story.fabric.look_hz);
  byId("pace").hidden = few === "";
  write(byId("looks"), few);
  const late = seen.late.length ? `, ${count(seen.late.length)} late` : "";
  write(byId("valid"), (seen.valid ? "✓ faithful" : "✗ not faithful") + late);
  mark(byId("valid"), "data-state", seen.valid ? "valid" : "invalid");
  const slow = late && `as they were up to 2 s ago, for want of the CPU: ${seen.late.join(" ")}`;
  mark(byId("valid"), "title", [...seen.reasons, slow].filter(Boolean).join("; "));
  write(byId("clock"), instant(seen.at_ns) + (seen.running ? "" : ", stands still"));
  write(byId("dilation"), seen.dilation ? `${count(Math.round(seen.dilation))} x` : "-");
  write(byId("goodput"), rate(seen.planes.reduce((sum, plane) => sum + plane.goodput_bps, 0)));
  const [bad, all] = badOf(seen);
  write(byId("bad-evs"), all ? `${count(bad)} (${percent(bad / all)})` : "-");
  mark(byId("bad-evs"), "data-state", bad ? "some" : "none");
  byId("empty-chart").hidden = story.goodput.some(ring => ring.peak() > 0);
  write(byId("fault-count"), String(seen.faults.length));
  mark(byId("fault-count"), "data-state", seen.faults.length ? "some" : "none");
  const programs = seen.programs.map(programSays).join(", ") || "none";
  write(byId("programs"), programs);
  mark(byId("programs"), "title", programs);
}

/** How many EVs are assumed bad, or QPs are in error, and of how many. */
function badOf(seen) {
  if (story.fabric.transport === "rc") {
    const { errors, all } = rcErrors(seen);
    return [errors, all];
  }
  const evs = evSums(seen.planes.map(plane => plane.evs));
  return [evs.assumed_bad, evs.all];
}

const programSays = one =>
  `${one.name} ${one.steps ? `step ${one.steps}` : one.kind}${one.failed ? ` ✗${one.failed}` : ""}`;

// ---- what the reader does -------------------------------------------------------------------------------------------

async function attempt(work) {
  try {
    say(await work(), false);
  } catch (wrong) {
    if (!(wrong instanceof Error)) throw wrong;
    say(wrong.message, true);
  }
}

let quiet = 0;
function say(text, wrong) {
  const said = byId("said");
  said.classList.toggle("wrong", wrong);
  write(said, text);
  clearTimeout(quiet);
  quiet = setTimeout(() => write(said, ""), SAID_MS);
}

const KEYS = {
  f: () => map.current && !acts.readonly && panel.fail(map.current),
  h: () => map.current && !acts.readonly && panel.heal(map.current),
  m: () => map.focus(map.current?.id ?? map.scene?.parts.keys().next().value),
  e: () => byId("tab-events").click(),
  b: () => byId("tab-faults").click(),
  r: () => byId("tab-run").click(),
  t: () => colours.toggle(),
  "?": () => byId("help").showModal(),
  Escape: () => choose(null),
};

document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, select, dialog[open]")) return;
  const action = KEYS[event.key];
  if (action === undefined || event.defaultPrevented) return;
  event.preventDefault();
  action();
});

byId("theme").addEventListener("click", () => colours.toggle());
byId("help-open").addEventListener("click", () => byId("help").showModal());
legend(byId("legend"));
help(byId("help"));
tabs(document.querySelector('[role="tablist"]'));

async function beginUntilItWorks() {
  try {
    await begin();
  } catch (wrong) {
    if (!(wrong instanceof Refused)) throw wrong;
    notice(`${wrong.message}; the page goes on trying.`);
    setTimeout(beginUntilItWorks, 2000);
  }
}

beginUntilItWorks();
