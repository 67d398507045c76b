"""The map of links for people: a table of links that are not good, and sums.

`link_verdicts`' `record` is the plain data.
"""

from collections.abc import Mapping
from typing import Any

KINDS = {"nic-t0": "NIC-T0", "t0-t1": "T0-T1"}
UNKNOWN_SHOWN = 8
"""How many links without a verdict are named; a fabric that has just started has only such links."""
VERDICTS = ("good", "suspect", "gray", "down", "unknown")


def render_map(record: Mapping[str, Any], *, everything: bool = False) -> str:
    """The links that are not good (all of them with `everything`), and how many there are of each kind.

    `record` is a map's record; its `plan` has the denied paths, if there are any.
    """
    rows = [link for link in record["links"] if everything or link["verdict"] not in ("good", "unknown")]
    unknown = [link for link in record["links"] if link["verdict"] == "unknown"]
    rows += [] if everything else unknown[:UNKNOWN_SHOWN]
    lines = [f"{name}  dead switch" for name in record["dead"]]
    if rows:
        width = max(len(row["link"]) for row in rows)
        lines += [f"{'link':<{width}}  verdict     loss  probes  lost  note"]
        lines += [
            f"{row['link']:<{width}}  {row['verdict']:<7}  {_loss(row):>7}  {row['probes']:>6}  {row['lost']:>4}  "
            f"{'; '.join(filter(None, (row['direction'], row['note'])))}".rstrip()
            for row in rows
        ]
    if not everything and len(unknown) > UNKNOWN_SHOWN:
        lines.append(f"and {len(unknown) - UNKNOWN_SHOWN} more that are unknown")
    lines += [_sum_of(record, kind) for kind in KINDS]
    lines += _denied(record.get("plan"))
    return "\n".join(lines)


def is_all_good(record: Mapping[str, Any]) -> bool:
    """Whether no switch is dead and every link is good."""
    return not record["dead"] and all(link["verdict"] == "good" for link in record["links"])


def _loss(row: Mapping[str, Any]) -> str:
    if row["verdict"] == "unknown":
        return "?"
    return f"{'<' if row['verdict'] == 'good' else ''}{row['loss']:.2%}"


def _sum_of(record: Mapping[str, Any], kind: str) -> str:
    verdicts = [link["verdict"] for link in record["links"] if link["kind"] == kind]
    parts = [f"{verdicts.count(verdict)} {verdict}" for verdict in VERDICTS if verdict in verdicts]
    return f"{KINDS[kind]}: {len(verdicts)} links, {', '.join(parts)}"


def _denied(plan: Mapping[str, Any] | None) -> list[str]:
    if plan is None:
        return []
    lines = [f"avoided: {', '.join(plan['avoided'])}"] if plan["avoided"] else []
    return lines + [f"NOT avoided: {name}, {why}" for name, why in plan["kept"].items()]
