"""The PodMonitor: an endpoint per target, with the labels that the target has elsewhere."""

from orchestrator.kubernetes.pod_monitor import component, pod_monitor
from orchestrator.prometheus.discovery import targets
from tests.orchestrator.kubernetes.test_workloads import three, workloads


def test_every_target_is_an_endpoint_with_its_labels() -> None:
    fabric = workloads(three(), "vm1")
    endpoints = pod_monitor(fabric)["spec"]["podMetricsEndpoints"]
    found = [
        {"__metrics_path__": one["path"]} | {rule["targetLabel"]: rule["replacement"] for rule in one["relabelings"]}
        for one in endpoints
    ]
    expected = [target["labels"] for target in targets(fabric.layout, "vm1")]
    assert found == [{"job": "mrcfabric"} | {key: value for key, value in row.items() if value} for row in expected]
    assert {(one["port"], one["honorLabels"]) for one in endpoints} == {("metrics", True)}


def test_it_is_a_component_of_its_own() -> None:
    assert component("lab")["kind"] == "Component"
    assert component("lab")["namespace"] == "lab"
