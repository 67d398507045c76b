// Fabrics of any size as `/api/fabric` tells them, and snapshots of them with nothing on.

import { fabricOf } from "/static/story.js";

export function fabric(planes, t0s, t1s, nicsPerT0) {
  const nics = Array.from({ length: t0s * nicsPerT0 }, (_, place) => `h${String(place).padStart(3, "0")}`);
  const nodes = nics.map((name, index) => ({ name, role: "nic", plane: null, index }));
  const links = [];
  for (const [place, nic] of nics.entries())
    for (let plane = 0; plane < planes; plane += 1) {
      const b = `p${plane}-t0-${Math.floor(place / nicsPerT0)}`;
      links.push({ name: `${nic}~${b}`, plane, a: nic, b, rate_bps: 100e9 });
    }
  for (let plane = 0; plane < planes; plane += 1) {
    for (let t0 = 0; t0 < t0s; t0 += 1) nodes.push({ name: `p${plane}-t0-${t0}`, role: "t0", plane, index: t0 });
    for (let t1 = 0; t1 < t1s; t1 += 1) nodes.push({ name: `p${plane}-t1-${t1}`, role: "t1", plane, index: t1 });
    for (let t0 = 0; t0 < t0s; t0 += 1)
      for (let t1 = 0; t1 < t1s; t1 += 1) {
        const [a, b] = [`p${plane}-t0-${t0}`, `p${plane}-t1-${t1}`];
        links.push({ name: `${a}~${b}`, plane, a, b, rate_bps: 100e9 });
      }
  }
  return fabricOf({ name: "made up", planes, rate_bps: 100e9, nodes, links, ev_letters: {} });
}

export function snapshot(of, at_ns, changes = {}) {
  const idle = { utilisation: 0, queue_bytes: 0, marks: 0, trims: 0, drops: 0 };
  return {
    at_ns,
    span_ns: 1000,
    faults: [],
    nics: {},
    switches: {},
    links: Object.fromEntries(of.links.map(({ id }) => [id, { state: "up", up: idle, down: idle, faults: [] }])),
    planes: Array.from({ length: of.planes }, () => ({ goodput_bps: at_ns, evs: { good: 4 }, ports_down: 0 })),
    ...changes,
  };
}
