// The links of the picture, on a canvas below the parts: thousands of lines cost little, and only planes that changed
// are drawn again. Colours and widths come from the style, by the classes of `scales.js`.

import { laneLines } from "./layout.js";
import { pauseClass, pausesOf } from "./pauses.js";
import { utilisationClass } from "./scales.js";
import { directionsOf } from "./troubles.js";

const DOWN = 7;
const IMPAIRED = 8; // and so much more for each class of utilisation
const PAUSED = 14; // and so much more for each class of a pause, from 1
const UNHURT = { up: false, down: false };
const LINES_A_FRAME = 800;
const MARKS_MOST = 48; // crosses in one plane; where there are more, dashes alone are read more easily

/** Draws the links of one scene. */
export class Cables {
  constructor(canvas) {
    this._canvas = canvas;
    this._context = canvas.getContext("2d");
    this._pens = null;
  }

  /** Take a scene; everything is drawn at the next `draw`. */
  show(scene) {
    const ratio = window.devicePixelRatio || 1;
    this._canvas.width = Math.round(scene.width * ratio);
    this._canvas.height = Math.round(scene.height * ratio);
    this._context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this._planes = [];
    this._faint = scene.thick < 0.6 ? 0.35 : 1; // thousands of lines: what is well makes room for what is not
    this._own = null;
    if (scene.thick !== this._thick) this._pens = null;
    this._thick = scene.thick;
    for (const part of scene.parts.values()) {
      if (part.kind === "plane") this._planes[part.plane] = { panel: part.panel, lines: [], stale: true };
      if (part.kind !== "link") continue;
      this._planes[part.plane].lines.push({ part, ...laneLines(part, scene.lanes), upPen: -1, downPen: -1 });
    }
  }

  /** The theme has changed: read the colours again and draw everything. */
  restyle() {
    this._pens = null;
    for (const plane of this._planes ?? []) plane.stale = true;
  }

  /** Let the links of a node or port, and those named, stand out from the others of their plane; null: of none. */
  attend(id, links = []) {
    const wanted = new Set(links);
    const before = this._own ?? (() => false);
    const own = ({ part }) => part.a === id || part.b === id || wanted.has(part.id);
    for (const plane of this._planes ?? []) plane.stale ||= plane.lines.some(line => own(line) !== before(line));
    this._own = own;
  }

  /** Draw the planes in which a link looks different now, over as many frames as keep each of them short. */
  draw(snapshot) {
    const hit = snapshot ? directionsOf(snapshot) : null;
    for (const plane of this._planes) this._update(plane, snapshot, hit);
    if (!this._drawing) this._drawSome();
  }

  _drawSome() {
    this._pens ??= pens(this._canvas, this._thick);
    let lines = 0;
    const stale = this._planes.filter(plane => plane.stale);
    while (stale.length && lines < LINES_A_FRAME) {
      const plane = stale.shift();
      plane.stale = false;
      this._drawPlane(plane);
      lines += plane.lines.length;
    }
    this._drawing = stale.length > 0;
    if (this._drawing) requestAnimationFrame(() => this._drawSome());
  }

  _update(plane, snapshot, hit) {
    for (const line of plane.lines) {
      const link = snapshot?.links[line.part.id];
      const ways = link && link.state !== "up" ? hit(line.part.id, link) : UNHURT;
      const paused = pausesOf(snapshot, line.part.id);
      const [up, down] = [penOf(link, "up", ways, paused), penOf(link, "down", ways, paused)];
      if (up === line.upPen && down === line.downPen) continue;
      [line.upPen, line.downPen] = [up, down];
      plane.stale = true;
    }
  }

  _drawPlane(plane) {
    const { x, y, w, h } = plane.panel;
    this._context.clearRect(x - 1, y - 1, w + 2, h + 2);
    const own = plane.lines.filter(line => this._own?.(line));
    const amiss = plane.lines.filter(isAmiss);
    this._context.globalAlpha = own.length ? 0.22 : this._faint;
    this._lines(plane.lines.filter(line => !isAmiss(line)));
    this._context.globalAlpha = own.length ? 0.5 : 1;
    this._lines(amiss);
    this._context.globalAlpha = 1;
    this._lines(own);
    this._crosses(amiss.filter(line => isHurt(line.upPen) || isHurt(line.downPen)));
    this._bars(amiss.filter(line => line.upPen > PAUSED || line.downPen > PAUSED));
    this._context.setLineDash([]);
  }

  _lines(lines) {
    const paths = this._pens.map(() => null);
    for (const line of lines) {
      trace((paths[line.upPen] ??= new Path2D()), line.up);
      trace((paths[line.downPen] ??= new Path2D()), line.down);
    }
    for (const [place, path] of paths.entries()) if (path) this._stroke(path, this._pens[place]);
  }

  _stroke(path, pen) {
    this._context.strokeStyle = pen.colour;
    this._context.lineWidth = pen.width;
    this._context.setLineDash(pen.dash);
    this._context.stroke(path);
  }

  _crosses(marked) {
    if (marked.length > MARKS_MOST) return;
    const [cross, diamond] = [new Path2D(), new Path2D()];
    for (const { part, upPen, downPen } of marked) {
      const [x, y, r] = [part.x, part.y, 4];
      if (upPen === DOWN || downPen === DOWN) {
        trace(cross, [x - r, y - r, x + r, y + r]);
        trace(cross, [x - r, y + r, x + r, y - r]);
      } else {
        diamond.moveTo(x, y - r - 1);
        diamond.lineTo(x + r + 1, y);
        diamond.lineTo(x, y + r + 1);
        diamond.lineTo(x - r - 1, y);
        diamond.closePath();
      }
    }
    this._stroke(cross, { ...this._pens[DOWN], width: 2.5, dash: [] });
    this._context.fillStyle = this._pens[IMPAIRED].mark;
    this._context.fill(diamond);
  }

  // Two bars beside the sender of a direction that is paused, as on a button that pauses.
  _bars(paused) {
    if (paused.length > MARKS_MOST) return;
    const bars = new Path2D();
    for (const { up, down, upPen, downPen } of paused)
      for (const [[x1, y1, x2, y2], pen, along] of [[up, upPen, 0.3], [down, downPen, 0.7]]) {
        if (pen <= PAUSED) continue;
        const [x, y] = [x1 + along * (x2 - x1), y1 + along * (y2 - y1)];
        for (const side of [-2.5, 2.5]) trace(bars, [x + side, y - 5, x + side, y + 5]);
      }
    this._stroke(bars, { ...this._pens[PAUSED + 1], width: 2.2, dash: [] });
  }
}

const isHurt = pen => pen >= DOWN && pen <= PAUSED;
const isAmiss = line => Math.max(line.upPen, line.downPen) >= DOWN;

/** Which pen a way of a link is drawn with; `hit`: the ways that the fault of the link is about. */
function penOf(link, way, hit, paused) {
  if (!link) return 0;
  if (hit[way] && link.state === "down") return DOWN;
  const pause = pauseClass(paused[way]);
  if (pause) return PAUSED + pause;
  const found = utilisationClass(link[way].utilisation);
  return hit[way] && link.state === "impaired" ? IMPAIRED + found : found;
}

function trace(path, [x1, y1, x2, y2]) {
  path.moveTo(x1, y1);
  path.lineTo(x2, y2);
}

function pens(canvas, thick) {
  const style = getComputedStyle(canvas);
  const colour = name => style.getPropertyValue(`--${name}`).trim();
  const widths = [0.8, 1, 1.2, 1.5, 1.8, 2.2, 2.6];
  const plain = widths.map((width, place) => ({ colour: colour(`u${place}`), width: width * thick, dash: [] }));
  const down = { colour: colour("bad"), width: Math.max(1, 1.3 * thick), dash: [4, 3] };
  const impaired = plain.map(pen => ({
    ...pen,
    width: Math.max(1.2, pen.width),
    dash: [2, 3],
    mark: colour("skip"),
  }));
  const paused = [1.6, 2.2, 3].map(width => ({
    colour: colour("pause"),
    width: Math.max(1.2, width * thick),
    dash: [7, 2.5, 1.5, 2.5],
  }));
  return [...plain, down, ...impaired, ...paused];
}
