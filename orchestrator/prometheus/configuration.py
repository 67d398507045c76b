"""The configuration of a Prometheus that watches fabrics: what it scrapes, how often, and its rule files.

Owns what the files say, as plain data and as YAML. `deploy/prometheus` ships the configuration for all fabrics below
`out/`. `mrcfabric up --with-prometheus` writes it into the run folder for one fabric.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import yaml

from orchestrator.prometheus.alerts import ALERTS
from orchestrator.prometheus.recording import RECORDS
from orchestrator.prometheus.rule import Pace

SHIPPED_PACE: Final = Pace(5_000)
"""The pace of the files in `deploy/prometheus`; the Grafana data source there has the same."""
SHIPPED_TARGETS: Final = ("../../out/demo/targets.json", "targets/*.json")
"""The fabric of the default name, and all target lists (or links to such) that are put beside the configuration."""
JOB: Final = "mrcfabric"
CONFIGURATION: Final = "prometheus.yml"
RECORDING: Final = "recording.yml"
ALERTING: Final = "alerts.yml"
RULE_FILES: Final = (RECORDING, ALERTING)

LINE_CHARS: Final = 110


def configuration(pace: Pace, target_files: Sequence[str]) -> dict[str, Any]:
    """Make prometheus.yml. `target_files`: file_sd lists, relative to its folder; only file names may have a `*`."""
    return {
        "global": {"scrape_interval": pace.scrape, "evaluation_interval": pace.scrape},
        "rule_files": list(RULE_FILES),
        "scrape_configs": [
            {
                "job_name": JOB,
                # A node's own labels name its fabric, plane and node; the agent's series are about all nodes.
                "honor_labels": True,
                "file_sd_configs": [{"files": list(target_files), "refresh_interval": pace.scrape}],
            }
        ],
    }


def recording_rules(pace: Pace) -> dict[str, Any]:
    """Make recording.yml: one group, because Prometheus evaluates the rules of a group in order."""
    rules = [record.rule(pace) for records in RECORDS.values() for record in records]
    return {"groups": [{"name": "mrcfabric-recording", "rules": rules}]}


def alerting_rules(pace: Pace) -> dict[str, Any]:
    """Make alerts.yml: one group for each subject."""
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
    """Writes no anchors: people do not expect `&id001` in a file to read."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def text(data: Mapping[str, Any] | Sequence[Any]) -> str:
    """Format as YAML, with keys in the given order."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, width=LINE_CHARS, allow_unicode=True)
