// A fault as a line of a list, in words and with its remedy.

import { html } from "./elements.js";
import { instant, shortened } from "./scales.js";

/** A fault in a line. Pure. */
export function faultSays(fault) {
  const when = fault.in_force ? "" : ", not in force";
  const until = fault.end_ns === null ? "" : `, until ${instant(fault.end_ns)}`;
  return (
    `${fault.title || fault.kind}: ${shortened(fault.targets)}${when}${until}` +
    (fault.owner ? ` (${fault.owner})` : "")
  );
}

/** A line of a list of faults, with the button that heals it. */
export function faultLine(fault, acts) {
  const heal = html(
    "button",
    {
      class: "heal",
      type: "button",
      disabled: acts.readonly,
      "aria-label": `Heal ${fault.kind} ${fault.targets.slice(0, 3).join(" ")}`,
      onclick: () => acts.heal(`api/faults/${encodeURIComponent(fault.id)}`),
    },
    "Heal",
  );
  return html("li", { "data-fault": fault.id, "data-kind": fault.kind }, html("span"), heal);
}
