// What the page remembers: the newest snapshot, the last minutes as series, the faults and events seen. Pure.
//
// Everything has a bound: the oldest goes. A snapshot in which fabric time stood still replaces the newest figures and
// adds nothing to a series, whose axis is fabric time.

export const POINTS_MAX = 480;
export const LANE_POINTS_MAX = 160;
export const EVENTS_MAX = 2000;
export const ENDED_FAULTS_MAX = 200;

/** A window of the latest numbers, oldest first. */
export class Ring {
  constructor(size, Numbers = Float64Array) {
    this._values = new Numbers(size);
    this._next = 0;
    this.length = 0;
  }

  push(value) {
    this._values[this._next] = value;
    this._next = (this._next + 1) % this._values.length;
    this.length = Math.min(this.length + 1, this._values.length);
  }

  at(place) {
    const size = this._values.length;
    return this._values[(this._next - this.length + place + size) % size];
  }

  /** The largest of those in the window; 0 of none. */
  peak() {
    let most = 0;
    for (let place = 0; place < this.length; place += 1) most = Math.max(most, this.at(place));
    return most;
  }

  last() {
    return this.length ? this.at(this.length - 1) : 0;
  }
}

const laneRing = () => new Ring(LANE_POINTS_MAX, Float32Array);

/** What has been seen of one fabric. */
export class Story {
  constructor(fabric, points = POINTS_MAX) {
    this.fabric = fabric;
    this.snapshot = null;
    this.at = new Ring(points);
    this.goodput = Array.from({ length: fabric.planes }, () => new Ring(points));
    this.lanes = new Map(fabric.links.map(link => [link.id, { up: laneRing(), down: laneRing() }]));
    this.faults = new Map();
    this.events = [];
    this.eventsDropped = 0;
  }

  /** Take what `/api/history` has kept, before the first snapshot. */
  recall(history) {
    for (const row of history.rows) {
      if (this.at.length && row.at_ns <= this.at.last()) continue;
      this.at.push(row.at_ns);
      for (const [plane, ring] of this.goodput.entries()) ring.push(row.goodput_bps[plane] ?? 0);
    }
    for (const { gone_ns, ...fault } of history.faults) this.faults.set(fault.id, { ...fault, over_ns: gone_ns });
  }

  /** Take a snapshot. False when it is older than the one that is known. */
  take(snapshot) {
    if (this.snapshot !== null && snapshot.at_ns < this.snapshot.at_ns) return false;
    this.snapshot = snapshot;
    this._takeFaults(snapshot);
    if (!this.at.length || snapshot.at_ns > this.at.last()) this._addPoint(snapshot);
    return true;
  }

  _addPoint(snapshot) {
    this.at.push(snapshot.at_ns);
    for (const [plane, ring] of this.goodput.entries()) ring.push(snapshot.planes[plane]?.goodput_bps ?? 0);
    for (const [id, lane] of this.lanes) {
      const link = snapshot.links[id];
      lane.up.push(link ? link.up.utilisation : 0);
      lane.down.push(link ? link.down.utilisation : 0);
    }
  }

  _takeFaults(snapshot) {
    const present = new Set();
    for (const fault of snapshot.faults) {
      present.add(fault.id);
      this.faults.set(fault.id, { ...fault, over_ns: null });
    }
    for (const fault of this.faults.values()) {
      if (!present.has(fault.id) && fault.over_ns === null) {
        fault.over_ns = Math.max(fault.start_ns, Math.min(fault.end_ns ?? snapshot.at_ns, snapshot.at_ns));
      }
    }
    const ended = [...this.faults.values()].filter(fault => fault.over_ns !== null);
    for (const fault of ended.slice(0, Math.max(0, ended.length - ENDED_FAULTS_MAX))) this.faults.delete(fault.id);
  }

  /** Add lines of the event log; those that are known already are left out. */
  tell(lines) {
    const newest = this.events.length ? this.events[this.events.length - 1].n : 0;
    const fresh = lines.filter(line => line.n > newest);
    this.events.push(...fresh);
    const surplus = this.events.length - EVENTS_MAX;
    if (surplus > 0) {
      this.events.splice(0, surplus);
      this.eventsDropped += surplus;
    }
    return fresh;
  }

  /** Instants of the first and the newest point. */
  window() {
    if (!this.at.length) return [0, 1];
    const [from, to] = [this.at.at(0), Math.max(this.at.last(), this.snapshot.at_ns)];
    return to > from ? [from, to] : [from - 1000, to];
  }

  /** Faults with a part inside the window, oldest first: {fault, from, to, open}. */
  bars() {
    const [from, to] = this.window();
    return [...this.faults.values()]
      .map(fault => ({
        fault,
        from: fault.start_ns,
        to: fault.over_ns ?? fault.end_ns ?? to,
        open: fault.over_ns === null,
      }))
      .filter(bar => bar.to >= from && bar.from <= to)
      .map(bar => ({ ...bar, from: Math.max(bar.from, from), to: Math.min(bar.to, to) }))
      .sort((one, other) => one.fault.start_ns - other.fault.start_ns);
  }
}

/**
 * The fabric as the page draws it, of what `/api/fabric` says: {name, planes, line_bps, nics: [{id, t0}], switches:
 * [{id, plane, tier, index}], links: [{id, plane, a, b, rate_bps}]}, `a` the lower end.
 */
export function fabricOf(told) {
  const named = role => told.nodes.filter(node => node.role === role);
  return {
    ...told,
    line_bps: told.planes * told.rate_bps,
    nics: named("nic").map(node => ({ id: node.name, t0: node.t0 })),
    switches: [...named("t0"), ...named("t1")].map(node => ({
      id: node.name,
      plane: node.plane,
      tier: node.role,
      index: node.index,
    })),
    links: told.links.map(({ name, ...link }) => ({ id: name, ...link })),
  };
}

/** The faults of a snapshot that bear on a part: those that name it, one of its directions, or one of its ends. */
export function faultsOn(snapshot, part) {
  const tables = { link: snapshot.links, switch: snapshot.switches, nic: snapshot.nics };
  const ids = tables[part.kind]?.[part.id]?.faults ?? [];
  return snapshot.faults.filter(fault => ids.includes(fault.id) || isNamed(fault, part));
}

/** Whether a fault names a part, or one of its directions: healing the part ends it. */
export const isNamed = (fault, part) => fault.targets.some(target => names(target, part));

function names(target, part) {
  const spelled = String(target);
  if (part.kind === "plane") return spelled === String(part.plane);
  if (part.kind === "link") return spelled.replace(">", "~") === part.id || reversed(spelled) === part.id;
  return spelled === part.id;
}

function reversed(target) {
  return target.split(/[>~]/).reverse().join("~");
}

/** EVs by state, summed: {good, skip, assumed_bad, denied, all}. */
export function evSums(tables) {
  const sums = { good: 0, skip: 0, assumed_bad: 0, denied: 0, all: 0 };
  for (const table of tables) {
    for (const [state, number] of Object.entries(table)) {
      sums[state] = (sums[state] ?? 0) + number;
      sums.all += number;
    }
  }
  return sums;
}
