"""The parts of which every pod here is made: names, labels, what it may do, what it asks for, where its files are.

Pure. Objects are plain data as Kubernetes spells it. What a share's pod is, and the orchestrator's, is
`orchestrator.kubernetes.workloads`'s.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from mrcfabric.errors import ConfigError
from mrcfabric.naming import shown
from orchestrator.hosts.placement.inventory import Host

Object: TypeAlias = dict[str, Any]

APP: Final = "mrcfabric"
"""Of the image, the service account, the map of files; the secret's with `-key` behind it."""
IMAGE: Final = APP
"""What pods call the image; the kustomization says which one that is."""
KEYS: Final = f"{APP}-key"
FILES_DIR: Final = "/etc/mrcfabric"
"""Of a pod: the inventory, the topology or the scenario, and the key where the inventory names it."""
RUN_DIR: Final = "/run/mrcfabric"
"""Of a pod: where it may write, and where commands given in it stand."""
USER: Final = 10001
"""As of deploy/Containerfile."""
RUN_BYTES: Final = "1Gi"
"""Of logs and reports; a pod that writes more is evicted."""
FILE_MODE: Final = 0o440
"""Files are root's and readable by the pod's group."""
GRACE_S: Final = 30
"""How long a pod may take to end its daemons."""
NAME_CHARACTERS_MAX: Final = 50
HOSTNAME: Final = "kubernetes.io/hostname"
"""The label of a node, and of a host in the inventory that is not called as its node is."""

_LABEL: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_STRANGE: Final = re.compile(r"[^a-z0-9]+")


def plain(name: str) -> str:
    """A host's name as names of objects are spelled."""
    return _STRANGE.sub("-", name.lower())[:NAME_CHARACTERS_MAX].strip("-")


def labels(component: str, fabric: str, **more: str) -> dict[str, str]:
    """Of everything that belongs to one pod."""
    own = {"name": APP, "component": component, "instance": fabric}
    return {f"app.kubernetes.io/{key}": value for key, value in own.items()} | {
        f"{APP}/{key}": value for key, value in more.items()
    }


def node_of(host: Host) -> dict[str, str]:
    """The selector of the node that a host is. Raises ConfigError."""
    name = host.labels.get(HOSTNAME, host.name)
    if not _LABEL.fullmatch(name):
        hint = f"labels: {{{HOSTNAME}: NAME}}, as `kubectl get nodes --show-labels` has it"
        raise ConfigError(f"host {host.name}", f"{shown(name)} is no name of a node", hint)
    return {HOSTNAME: name}


def resources(cores: int | None, memory_bytes: int, memory_max_bytes: int | None) -> Object:
    """What is asked for: cores (one, where none are told) and memory. Memory is limited where a host tells its own;
    cores never are, since a fabric that is held back is slow for all."""
    asked = -(-memory_bytes // 2**20)
    found: Object = {"requests": {"cpu": str(cores or 1), "memory": f"{asked}Mi"}}
    if memory_max_bytes is not None:
        found["limits"] = {"memory": f"{max(asked, memory_max_bytes // 2**20)}Mi"}
    return found


def container(name: str, arguments: Sequence[str], asked: Object, **more: Any) -> Object:
    """A container of the image that may do nothing but run, and write below RUN_DIR."""
    return {
        "name": name,
        "image": IMAGE,
        "command": ["mrcfabric"],
        "args": list(arguments),
        "workingDir": RUN_DIR,
        **more,
        "resources": asked,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "run", "mountPath": RUN_DIR},
            {"name": "files", "mountPath": FILES_DIR, "readOnly": True},
        ],
    }


def pod(one: Object, host: Host | None, sources: Sequence[Object]) -> Object:
    """The specification of a pod with one container, on the network of its host where it is one of the inventory's.

    `sources` are what its files are projected from.
    """
    placed: Object = {} if host is None else {"nodeSelector": node_of(host), "hostNetwork": True}
    return {
        **placed,
        "dnsPolicy": "Default",  # nothing is looked up: an inventory has addresses
        "enableServiceLinks": False,
        "serviceAccountName": APP,
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": GRACE_S,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [one],
        "volumes": [
            {"name": "run", "emptyDir": {"sizeLimit": RUN_BYTES}},
            {"name": "files", "projected": {"defaultMode": FILE_MODE, "sources": list(sources)}},
        ],
    }


def projected(kind: str, name: str, items: Mapping[str, str]) -> Object:
    """A source of files: `kind` is configMap or secret, `items` are keys and where each is to be."""
    return {kind: {"name": name, "items": [{"key": key, "path": path} for key, path in sorted(items.items())]}}


def deployment(name: str, own: Mapping[str, str], specification: Object, annotations: Mapping[str, str]) -> Object:
    """One pod that is started again when it ends, and never twice at a time."""
    template: Object = {"labels": dict(own)}
    if annotations:
        template["annotations"] = dict(annotations)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": dict(own)},
        "spec": {
            "replicas": 1,
            "revisionHistoryLimit": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": dict(own)},
            "template": {"metadata": template, "spec": specification},
        },
    }
