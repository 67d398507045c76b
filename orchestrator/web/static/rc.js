// What there is of RC NICs, where those of MRC have EVs: QPs by state, rates, notifications, what was sent again. Pure,
// but for the table of a NIC's QPs.

import { html, keyed, write } from "./elements.js";
import { bytes, count, percent, rate } from "./scales.js";

const PATHS = { ecmp: "by ECMP", pinned: "pinned", lid: "by LID" };
const perSecond = value => `${count(Math.round(value))} /s`;

/** QPs by state in words; "none" without any. */
export function statesSay(states) {
  const found = Object.entries(states).filter(([, number]) => number);
  return found.map(([state, number]) => `${count(number)} ${state}`).join(", ") || "none";
}

/** The rows of a NIC's figures. */
export function rcRows({ rc, paused }) {
  return [
    ["QPs by state", statesSay(rc.states)],
    ["rate of a QP, mean and least", `${rate(rc.rate_bps_mean)}, ${rate(rc.rate_bps_min)}`],
    ["QPs slowed (DCQCN)", count(rc.slowed)],
    [`paths ${PATHS[rc.path]}, QPs by plane`, rc.ports.join(" ")],
    ["CNPs sent, received", `${perSecond(rc.cnps_sent_per_s)}, ${perSecond(rc.cnps_received_per_s)}`],
    ["NAKs sent, received", `${perSecond(rc.naks_sent_per_s)}, ${perSecond(rc.naks_received_per_s)}`],
    ["sent again since the look before", bytes(rc.retransmitted_bytes)],
    ["paused, by plane", paused.map(percent).join(" ")],
  ];
}

/** The rows of a NIC's port. */
export function rcPortRows({ rc, paused }, plane) {
  return [
    ["QPs that send here", count(rc.ports[plane])],
    ["paused", percent(paused[plane])],
  ];
}

/** The rows of a plane. */
export function rcPlaneRows(snapshot, plane) {
  const nics = Object.values(snapshot.nics).filter(nic => nic.rc);
  const qps = nics.reduce((sum, nic) => sum + nic.rc.ports[plane], 0);
  return [
    ["QPs that send here", count(qps)],
    ["NIC ports that are paused", count(nics.filter(nic => nic.paused[plane] > 0).length)],
  ];
}

/** QPs in error of a whole fabric of RC NICs, and of how many. */
export function rcErrors(snapshot) {
  const views = Object.values(snapshot.nics).filter(nic => nic.rc);
  const all = views.reduce((sum, nic) => sum + nic.qps, 0);
  return { all, errors: views.reduce((sum, nic) => sum + nic.rc.states.error, 0) };
}

const ASK_MS = 1000;
const HEADS = ["QP", "peer", "state", "plane", "UDP port", "rate", "open"];

/** The QPs of a NIC in the box that EVs have elsewhere. `qpsOf(nic)` answers with them. */
export class QpTable {
  constructor(root, qpsOf) {
    this._nic = root.querySelector("#strip-nic");
    this._sums = root.querySelector("#ev-sums");
    this._qpsOf = qpsOf;
    this._body = html("tbody");
    const head = html("tr", {}, ...HEADS.map(word => html("th", {}, word)));
    root.querySelector("#ev-rows").replaceChildren(html("table", {}, html("thead", {}, head), this._body));
    root.querySelector("#ev-rows").removeAttribute("role");
    write(root.querySelector("h2"), "QPs");
    root.querySelector("h2").setAttribute("aria-label", "QPs of a NIC");
    root.querySelector("#strip-qp").closest("label").hidden = true;
    this._nic.addEventListener("change", () => this._ask());
    this._asked = 0;
  }

  show(fabric) {
    this._nic.replaceChildren(...fabric.nics.map(nic => html("option", { value: nic.id }, nic.id)));
  }

  /** Show a NIC's QPs, as when it is chosen in the map. */
  follow(nic) {
    this._nic.value = nic;
    this._followed = true;
    this._ask();
  }

  /** Take a snapshot: choose a NIC that has QPs while the chosen one has none, and ask again now and then. */
  update(snapshot) {
    const loaded = id => (snapshot.nics[id]?.qps ?? 0) > 0;
    const first = Object.keys(snapshot.nics).find(loaded);
    if (!this._followed && !loaded(this._nic.value) && first) this._nic.value = first;
    if (performance.now() - this._asked > ASK_MS) this._ask();
  }

  draw() {}

  async _ask() {
    this._asked = performance.now();
    const nic = this._nic.value;
    const found = await this._qpsOf(nic).catch(() => null);
    if (nic !== this._nic.value || found === null) return;
    keyed(
      this._body,
      found,
      qp => qp.qpn,
      qp => html("tr", {}, ...qpCells(qp).map(() => html("td"))),
      (row, qp) => qpCells(qp).forEach((cell, place) => write(row.children[place], cell)),
    );
    write(this._sums, found.length ? `${count(found.length)} QPs of ${nic}` : "This NIC has no QP; they come with a workload.");
  }
}

/** A QP as cells of the table. Pure. */
export function qpCells(qp) {
  const known = value => (value === null || value === undefined ? "-" : String(value));
  return [
    String(qp.qpn), qp.peer ?? "nobody", qp.state, known(qp.port), known(qp.sport),
    qp.rate_bps == null ? "-" : rate(qp.rate_bps), known(qp.unfinished),
  ];
}
