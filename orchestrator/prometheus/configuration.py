"""The configuration of a Prometheus that watches fabrics: what it scrapes, how often, and its rule files.

Owns what the files say, as plain data and as YAML. The same configuration is shipped in `deploy/prometheus` for
every fabric below `out/`, and written into the run folder by `mrcfabric up --with-prometheus` for one fabric.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import yaml

from orchestrator.prometheus.alerts import ALERTS
from orchestrator.prometheus.recording import RECORDS
from orchestrator.prometheus.rule import Pace

SHIPPED_PACE: Final = Pace(5_000)
"""Of the files in `deploy/prometheus`; the Grafana data source there says the same."""
SHIPPED_TARGETS: Final = ("../../out/demo/targets.json", "targets/*.json")
"""A fabric of the default name, and whatever lists (or links to lists) somebody puts beside the configuration."""
JOB: Final = "mrcfabric"
CONFIGURATION: Final = "prometheus.yml"
RECORDING: Final = "recording.yml"
ALERTING: Final = "alerts.yml"
RULE_FILES: Final = (RECORDING, ALERTING)

LINE_CHARS: Final = 110


def configuration(pace: Pace, target_files: Sequence[str]) -> dict[str, Any]:
    """prometheus.yml; `target_files`: file_sd lists as seen from its folder, a `*` in a file's name alone."""
    return {
        "global": {"scrape_interval": pace.scrape, "evaluation_interval": pace.scrape},
        "rule_files": list(RULE_FILES),
        "scrape_configs": [
            {
                "job_name": JOB,
                # A node says itself of which fabric, plane and node its series are; the agent speaks of all nodes.
                "honor_labels": True,
                "file_sd_configs": [{"files": list(target_files), "refresh_interval": pace.scrape}],
            }
        ],
    }


def recording_rules(pace: Pace) -> dict[str, Any]:
    """recording.yml: one group, because rules of one group are evaluated in their order."""
    rules = [record.rule(pace) for records in RECORDS.values() for record in records]
    return {"groups": [{"name": "mrcfabric-recording", "rules": rules}]}


def alerting_rules(pace: Pace) -> dict[str, Any]:
    """alerts.yml: one group per subject."""
    return {
        "groups": [
            {"name": f"mrcfabric-{subject}", "rules": [alert.rule(pace) for alert in alerts]}
            for subject, alerts in ALERTS.items()
        ]
    }


def files(pace: Pace, target_files: Sequence[str]) -> dict[str, str]:
    """Name -> text of every file that Prometheus reads."""
    return {
        CONFIGURATION: text(configuration(pace, target_files)),
        RECORDING: text(recording_rules(pace)),
        ALERTING: text(alerting_rules(pace)),
    }


class _Dumper(yaml.SafeDumper):
    """Without anchors: nobody writes `&id001` by hand."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def text(data: Mapping[str, Any] | Sequence[Any]) -> str:
    """As YAML, keys in the order they were given."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, width=LINE_CHARS, allow_unicode=True)
