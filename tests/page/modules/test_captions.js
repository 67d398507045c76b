import { captionsAt, captionsOf, placed } from "/static/captions.js";
import { isAbout } from "/static/lists.js";
import { event } from "/static/words.js";
import { equal, test } from "./suite.js";

const story = (events, fabric = { transport: "rc", lossless: true }) => ({ fabric, events, window: () => [1000, 2000] });
const line = (kind, at_ns, changes = {}) => ({
  kind, at_ns, node: "p0-t0-0", peer: "h000", port: 1, cls: 3, cause: "", section: "", ...changes,
});
const EVENTS = [
  line("pause_begun", 500),
  line("pause_begun", 1100, { since_ns: 1050 }),
  line("watchdog_fired", 1500, { paused_ns: 2_000_000 }),
  line("ecmp_member", 1700, { up: false, members: 3 }),
  line("qp_change", 1800, { node: "h001", qpn: 9, source: "rtr", target: "rts" }),
  line("qp_change", 1900, { node: "h001", qpn: 9, source: "rts", target: "error" }),
  line("retransmit", 1950),
  line("hash_change", 1960, { cause: "polarised", flows: 9, moved: 4 }),
];

test("events worth a caption have one, those outside the window none", () => {
  equal(captionsOf(story(EVENTS)), [
    { at: 1100, says: "h000 pauses p0-t0-0" },
    { at: 1500, says: "watchdog of p0-t0-0 fired" },
    { at: 1700, says: "p0-t0-0: up-link 1 out" },
    { at: 1900, says: "QP 9 of h001 in error" },
    { at: 1960, says: "p0-t0-0 hashes polarised" },
  ]);
  equal(captionsAt(story(EVENTS), 1501), ["watchdog of p0-t0-0 fired"]);
  equal(captionsAt(story(EVENTS), 1600), []);
});

test("an MRC fabric has no captions", () => equal(captionsOf(story(EVENTS, { transport: "mrc", lossless: false })), []));

test("captions that lie close together are one, and none covers another", () => {
  const many = Array.from({ length: 30 }, (_, place) => ({ at: 1000 + place * 3, says: "a pauses b" }));
  const found = placed(many, at => at - 1000, 400);
  equal(found[0].says, "a pauses b and 2 more");
  equal(found.length, 10);
  for (const [place, one] of found.entries())
    for (const other of found.slice(0, place))
      if (one.lane !== null && one.lane === other.lane) equal(other.start + other.says.length * 6 <= one.start, true);
  equal(found.some(one => one.lane === null), true);
});

test("a caption at the end of the axis keeps inside", () => {
  const [one] = placed([{ at: 1990, says: "watchdog of p0-t0-0 fired" }], at => (at - 1000) * 0.4, 400);
  equal([one.x, one.start < 300], [396, true]);
});

test("lines of pauses have words, and are about the link they came by", () => {
  equal(event(EVENTS[1]).what, "port 1 class 3: paused since 1 us");
  const ended = line("pause_ended", 1, { since_ns: 0, until_ns: 4000, paused_ns: 1000, frames: 1200 });
  equal(event(ended).what, "port 1 class 3: paused 1 us of 4 us, 1,200 frames");
  equal(event(EVENTS[2]).what, "port 1 class 3 obeys no more, paused for 2 ms without a break");
  equal(event(EVENTS[3]).what, "up-link 1 is out of the group, 3 left");
  equal(isAbout(EVENTS[1], { kind: "link", id: "h000~p0-t0-0" }), true);
  equal(isAbout(EVENTS[1], { kind: "link", id: "h001~p0-t0-0" }), false);
});
