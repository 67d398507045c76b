// Goodput of each plane over fabric time, and below it, on the same axis, the faults. A canvas: drawn again as a whole,
// which at a few looks a second costs less than keeping elements. Owns only the drawing; `Story` has the figures.

import { captionsAt, captionsOf, drawCaptions } from "./captions.js";
import { html, mark, svg, write } from "./elements.js";
import { instant, rate, rates, ticks } from "./scales.js";

const LEFT = 58;
const RIGHT = 8;
const TOP = 6;
const LANE = 15;
const LANES_MAX = 8;
const COLOURS = 8;

/**
 * Bars ({from, to}) laid into the fewest lanes in which none covers another, at most `most`: the lane of each. What
 * finds no room goes into the last lane. Pure.
 */
export function lanesOf(bars, most) {
  const ends = [];
  return bars.map(bar => {
    let lane = ends.findIndex(end => end <= bar.from);
    if (lane < 0) lane = Math.min(ends.length, most - 1);
    ends[lane] = Math.max(ends[lane] ?? 0, bar.to);
    return lane;
  });
}

/** The newest point that is not after `at`, or -1. Pure. */
export function pointAt(ring, at) {
  let [low, high] = [0, ring.length];
  while (low < high) {
    const place = (low + high) >> 1;
    if (ring.at(place) <= at) low = place + 1;
    else high = place;
  }
  return low - 1;
}

/** The chart in its canvas. */
export class Chart {
  constructor(canvas, keys, reading) {
    this._canvas = canvas;
    this._keys = keys;
    this._reading = reading;
    this._context = canvas.getContext("2d");
    this._only = null;
    this._pointed = null;
    this._instant = null;
    new ResizeObserver(() => this._story && this.draw(this._story)).observe(canvas);
    canvas.addEventListener("pointermove", event => this._read(event.offsetX));
    canvas.addEventListener("pointerleave", () => this._read(null));
    canvas.addEventListener("keydown", event => this._key(event));
    canvas.addEventListener("blur", () => this._read(null));
  }

  restyle() {
    this._colours = null;
    if (this._story) this.draw(this._story);
  }

  /** The lines of which planes there are; a plane that is pointed at stands out. */
  show(fabric) {
    this._keys.replaceChildren(
      ...Array.from({ length: fabric.planes }, (_, plane) => {
        const line = svg("path", {
          d: "M1 4H19",
          "data-place": plane % COLOURS,
          "stroke-dasharray": dashOf(plane).join(" "),
        });
        const only = which => () => this._show(which);
        const button = html(
          "button",
          { type: "button", "aria-label": `plane ${plane}`, onfocus: only(plane), onblur: only(null) },
          svg("svg", { viewBox: "0 0 20 8", "aria-hidden": "true" }, line),
          String(plane),
        );
        return html("li", { onpointerenter: only(plane), onpointerleave: only(null) }, button);
      }),
    );
  }

  _show(only) {
    this._only = only;
    if (this._story) this.draw(this._story);
  }

  /** Draw what is known. */
  draw(story) {
    this._story = story;
    const { clientWidth: width, clientHeight: height } = this._canvas;
    if (width < 80 || height < 40) return;
    this._size(width, height);
    const [from, to] = story.window();
    const bars = story.bars();
    const lanes = lanesOf(bars, Math.max(1, Math.min(LANES_MAX, Math.floor((height * 0.4) / LANE))));
    const deep = bars.length ? (Math.max(...lanes) + 1) * LANE + 4 : 0;
    const box = { left: LEFT, right: width - RIGHT, top: TOP, bottom: height - 16 - deep, below: height - 16 };
    const most = peak(story) || story.fabric.rate_bps;
    const x = at => box.left + ((at - from) / (to - from)) * (box.right - box.left);
    const y = value => box.bottom - (value / most) * (box.bottom - box.top);
    this._view = { box, from, to, x };
    this._axes(box, from, to, most, x, y);
    this._faults(bars, lanes, box, x);
    for (const [plane, ring] of story.goodput.entries()) this._line(plane, story.at, ring, x, y);
    drawCaptions(this._context, captionsOf(story), box, x, this._colours);
    this._hint = bars.length ? "Below the lines: faults. Point at an instant to read it." : "Point at an instant to read it.";
    this._cursor();
  }

  _size(width, height) {
    const ratio = window.devicePixelRatio || 1;
    const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (this._canvas.width !== w || this._canvas.height !== h) [this._canvas.width, this._canvas.height] = [w, h];
    this._context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this._context.clearRect(0, 0, width, height);
    this._context.font = "11px system-ui, sans-serif";
    this._colours ??= this._readColours();
  }

  _readColours() {
    const style = getComputedStyle(this._canvas);
    const colour = name => style.getPropertyValue(`--${name}`).trim();
    const planes = Array.from({ length: COLOURS }, (_, place) => colour(`c${place}`));
    return {
      planes,
      soft: colour("soft"),
      line: colour("line"),
      bad: colour("bad"),
      pause: colour("pause"),
      band: colour("band"),
      ink: colour("ink"),
      edge: colour("edge"),
    };
  }

  _axes(box, from, to, most, x, y) {
    const context = this._context;
    context.setLineDash([]);
    context.lineWidth = 1;
    context.strokeStyle = this._colours.line;
    context.fillStyle = this._colours.soft;
    context.textAlign = "right";
    for (const value of ticks(0, most, Math.max(2, (box.bottom - box.top) / 30))) {
      const at = Math.round(y(value)) + 0.5;
      this._stroke([
        [box.left, at],
        [box.right, at],
      ]);
      context.fillText(rate(value), box.left - 5, at + 4);
    }
    context.textAlign = "center";
    for (const at of ticks(from, to, Math.max(2, (box.right - box.left) / 85))) {
      if (at > from && x(at) < box.right - 24)
        context.fillText(instant(at), Math.max(x(at), box.left + 24), box.below + 13);
    }
  }

  _faults(bars, lanes, box, x) {
    const context = this._context;
    context.lineWidth = 1;
    const last = Math.max(...lanes);
    const crowd = lanes.filter(lane => lane === last).length;
    for (const [place, { fault, from, to, open }] of bars.entries()) {
      const [left, top] = [x(from), box.bottom + 4 + lanes[place] * LANE];
      const wide = Math.max(2, x(to) - left);
      context.fillStyle = this._colours.band;
      context.strokeStyle = this._colours.bad;
      context.setLineDash([1, 3]);
      for (const edge of [left, x(to)])
        if (edge > box.left + 1 && edge < box.right - 1)
          this._stroke([
            [edge, box.top],
            [edge, top],
          ]);
      context.strokeStyle = open ? this._colours.bad : this._colours.edge;
      context.setLineDash(fault.in_force || !open ? [] : [3, 2]);
      context.fillRect(left, top, wide, LANE - 2);
      context.strokeRect(left + 0.5, top + 0.5, wide - 1, LANE - 3);
      const others = lanes[place] === last && last > 0 && covered(bars, lanes, place) ? crowd : 0;
      if (others !== crowd) this._name(`${fault.kind} ${fault.targets[0] ?? ""}`, left, top, wide);
      else if (lanes.lastIndexOf(last) === place) this._name(`${crowd} more`, left, top, wide);
    }
    context.setLineDash([]);
  }

  _name(text, left, top, wide) {
    const context = this._context;
    if (wide < 40) return;
    context.save();
    context.beginPath();
    context.rect(left, top, wide - 3, LANE);
    context.clip();
    context.fillStyle = this._colours.ink;
    context.textAlign = "left";
    context.fillText(text, left + 4, top + 10.5);
    context.restore();
  }

  _line(plane, at, ring, x, y) {
    const context = this._context;
    const faint = this._only !== null && this._only !== plane;
    context.globalAlpha = faint ? 0.15 : 1;
    context.strokeStyle = this._colours.planes[plane % COLOURS];
    context.lineWidth = this._only === plane ? 2.4 : 1.5;
    context.setLineDash(dashOf(plane));
    context.beginPath();
    for (let place = 0; place < ring.length; place += 1) context.lineTo(x(at.at(place)), y(ring.at(place)));
    context.stroke();
    context.globalAlpha = 1;
    context.setLineDash([]);
  }

  _stroke(points) {
    this._context.beginPath();
    for (const [x, y] of points) this._context.lineTo(x, y);
    this._context.stroke();
  }

  _read(x) {
    this._pointed = x;
    this._instant = null;
    if (this._story) this.draw(this._story);
  }

  // An instant that is read by keys stays the same one while the lines go on, so that it is read aloud once.
  _key(event) {
    if (!this._view) return;
    const { from, to } = this._view;
    const step = ((to - from) / (event.shiftKey ? 400 : 50)) * ({ ArrowLeft: -1, ArrowRight: 1 }[event.key] ?? 0);
    if (event.key === "Home" || event.key === "End") this._instant = event.key === "Home" ? from : to;
    else if (step) this._instant = Math.max(from, Math.min(to, (this._instant ?? to) + step));
    else return;
    event.preventDefault();
    this._pointed = null;
    this.draw(this._story);
  }

  /** The instant that is being read, or null. */
  _readAt() {
    const { box, from, to } = this._view;
    if (this._pointed == null) return this._instant;
    if (this._pointed < box.left || this._pointed > box.right) return null;
    return from + ((this._pointed - box.left) / (box.right - box.left)) * (to - from);
  }

  _cursor() {
    const { box, x } = this._view;
    const at = this._readAt();
    if (at === null) {
      write(this._reading, this._hint);
      return;
    }
    const across = Math.max(box.left, x(at));
    this._context.strokeStyle = this._colours.ink;
    this._stroke([
      [across, box.top],
      [across, box.below],
    ]);
    const place = pointAt(this._story.at, at);
    const goodput = rates(this._story.goodput.map(ring => (place < 0 ? 0 : ring.at(place))));
    const faults = this._story
      .bars()
      .filter(bar => bar.from <= at && at <= bar.to)
      .map(bar => `${bar.fault.kind} ${bar.fault.targets[0]}`);
    write(this._reading, [`${instant(at)}: planes ${goodput}`, ...faults, ...captionsAt(this._story, at)].join(", "));
    mark(this._reading, "title", this._reading.textContent);
  }
}

// Whether a bar shares its lane with another one at the same time.
function covered(bars, lanes, place) {
  return bars.some(
    (bar, other) =>
      other !== place && lanes[other] === lanes[place] && bar.from < bars[place].to && bar.to > bars[place].from,
  );
}

// Colours that look alike to some readers have different dashes.
const DASHES = [[], [7, 3], [2, 2], [8, 3, 2, 3]];
const dashOf = plane => DASHES[plane % DASHES.length];

const peak = story => Math.max(...story.goodput.map(ring => ring.peak())) * 1.08;
