"""The PodMonitor of a standing fabric, for clusters with the Prometheus operator, as a component of a kustomization.

Pure. It has one endpoint for each target of the fabric, all at the orchestrator's one port, with the labels that
`orchestrator.prometheus.discovery` gives the same target elsewhere. It is a component of its own, since a cluster
without the operator refuses a PodMonitor.
"""

from typing import Final

from orchestrator.kubernetes import pods
from orchestrator.kubernetes.pods import Object
from orchestrator.kubernetes.workloads import LEADER, Workloads
from orchestrator.prometheus.configuration import SHIPPED_PACE
from orchestrator.prometheus.discovery import targets

FILE: Final = "podmonitor.yaml"
_PATH: Final = "__metrics_path__"


def pod_monitor(workloads: Workloads) -> Object:
    """The PodMonitor."""
    own = pods.labels(LEADER, workloads.fabric)
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PodMonitor",
        "metadata": {"name": LEADER, "labels": own},
        "spec": {"selector": {"matchLabels": own}, "podMetricsEndpoints": _endpoints(workloads)},
    }


def component(namespace: str) -> Object:
    """The kustomization of this component, which another kustomization can include."""
    return {
        "apiVersion": "kustomize.config.k8s.io/v1alpha1",
        "kind": "Component",
        "namespace": namespace,
        "resources": [FILE],
    }


def _endpoints(workloads: Workloads) -> list[Object]:
    host = workloads.layout.sites.sites[0].name
    found = []
    for target in targets(workloads.layout, host):
        labels = {"job": pods.APP, **target["labels"]}
        path = labels.pop(_PATH)
        found.append(
            {
                "port": "metrics",
                "path": path,
                "interval": SHIPPED_PACE.scrape,
                "honorLabels": True,
                "relabelings": [
                    {"targetLabel": label, "replacement": value} for label, value in labels.items() if value
                ],
            }
        )
    return found
