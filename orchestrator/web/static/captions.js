// What happened, as captions on the axis of fabric time: pauses, watchdogs, members of a group of equal paths, QPs in
// error. Events that lie close together share one caption.

const MOST = 300;
const NEAR = 9; // pixels within which events share a caption
const LANE = 13;
const LANES = 3;
const LETTER = 6;

const SAYS = {
  pause_begun: line => `${line.peer ?? "its peer"} pauses ${line.node}`,
  pause_ended: line => `${line.peer ?? "its peer"} pauses ${line.node} no more`,
  watchdog_fired: line => `watchdog of ${line.node} fired`,
  watchdog_restored: line => `watchdog of ${line.node} restored`,
  ecmp_member: line => `${line.node}: up-link ${line.port} ${line.up ? "in again" : "out"}`,
  way_lost: line => `${line.node} ${line.up ? "has a way to" : "has lost its way to"} ${line.peer ?? `port ${line.port}`}`,
  hash_change: line => `${line.node} hashes ${line.cause}`,
  qp_change: line => (line.target === "error" ? `QP ${line.qpn} of ${line.node} in error` : null),
};

/** The captions of a story inside its window, oldest first: [{at, says}]; none of MRC where nobody pauses. Pure. */
export function captionsOf(story) {
  const { fabric, events } = story;
  if (fabric.transport !== "rc" && !fabric.lossless) return [];
  const [from, to] = story.window();
  const found = [];
  for (let place = events.length - 1; place >= 0 && found.length < MOST; place -= 1) {
    const line = events[place];
    if (line.at_ns < from || line.at_ns > to) continue;
    const says = SAYS[line.kind]?.(line) ?? null;
    if (says !== null) found.push({ at: line.at_ns, says });
  }
  return found.reverse().sort((one, other) => one.at - other.at);
}

/**
 * Captions with their places: [{x, says, lane}]; those within NEAR of one another are one, which says how many more there
 * are; lane null: there is room for its mark only. `x(at)` is the place of an instant, `right` the end of the axis. Pure.
 */
export function placed(captions, x, right) {
  const groups = [];
  for (const { at, says } of captions) {
    const last = groups.at(-1);
    if (last && x(at) - last.x < NEAR) last.more += 1;
    else groups.push({ x: x(at), first: says, more: 0 });
  }
  const ends = Array.from({ length: LANES }, () => -Infinity);
  return groups.map(({ x: left, first, more }) => {
    const says = more ? `${first} and ${more} more` : first;
    const wide = says.length * LETTER + 10;
    const start = Math.min(left, right - wide);
    const lane = ends.findIndex(end => end <= start);
    if (lane >= 0) ends[lane] = start + wide;
    return { x: left, start, says, lane: lane < 0 ? null : lane };
  });
}

/** Draw captions into the chart's box: a mark at the instant, the words beside it. */
export function drawCaptions(context, captions, box, x, colours) {
  context.save();
  context.textAlign = "left";
  context.lineWidth = 1;
  for (const { x: at, start, says, lane } of placed(captions, x, box.right)) {
    context.strokeStyle = colours.pause;
    context.setLineDash([1, 2]);
    context.beginPath();
    context.moveTo(at, box.top);
    context.lineTo(at, box.bottom);
    context.stroke();
    context.fillStyle = colours.pause;
    context.fillRect(at - 2, box.top + (lane ?? 0) * LANE, 4, 4);
    if (lane === null) continue;
    context.fillStyle = colours.ink;
    context.fillText(says, start + 4, box.top + lane * LANE + 9);
  }
  context.restore();
}

/** The captions at an instant that is being read: those within a hundredth of the window. Pure. */
export function captionsAt(story, at) {
  const [from, to] = story.window();
  const near = (to - from) / 100;
  return captionsOf(story)
    .filter(one => Math.abs(one.at - at) <= near)
    .slice(0, 5)
    .map(one => one.says);
}
