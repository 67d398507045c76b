"""The parts of every pod here: names, labels, permissions, requests for resources, and files.

Pure. Objects are plain data in the spelling of Kubernetes. `orchestrator.kubernetes.workloads` makes the pods of shares
and of the orchestrator from them.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from mrcfabric.errors import ConfigError
from mrcfabric.naming import shown
from orchestrator.hosts.placement.inventory import Host

Object: TypeAlias = dict[str, Any]

APP: Final = "mrcfabric"
"""Name of the image, the service account and the map of files; the secret has `-key` after it."""
IMAGE: Final = APP
"""The name of the image in pods. The kustomization puts the real image in its place."""
KEYS: Final = f"{APP}-key"
FILES_DIR: Final = "/etc/mrcfabric"
"""Folder in a pod: the inventory, the topology or the scenario, and each key where the inventory names it."""
RUN_DIR: Final = "/run/mrcfabric"
"""Folder in a pod: the only one it can write, and where commands in it start."""
USER: Final = 10001
"""The user of deploy/Containerfile."""
RUN_BYTES: Final = "1Gi"
"""Room for logs and reports. Kubernetes evicts a pod that writes more."""
FILE_MODE: Final = 0o440
"""Root owns the files, and the pod's group can read them."""
GRACE_S: Final = 30
"""How long a pod may take to end its daemons."""
NAME_CHARACTERS_MAX: Final = 50
HOSTNAME: Final = "kubernetes.io/hostname"
"""The label of a node. A host of the inventory has it if its name is not that of its node."""

_LABEL: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_STRANGE: Final = re.compile(r"[^a-z0-9]+")


def plain(name: str) -> str:
    """A host's name in the spelling that names of objects allow."""
    return _STRANGE.sub("-", name.lower())[:NAME_CHARACTERS_MAX].strip("-")


def labels(component: str, fabric: str, **more: str) -> dict[str, str]:
    """The labels of everything that belongs to one pod."""
    own = {"name": APP, "component": component, "instance": fabric}
    return {f"app.kubernetes.io/{key}": value for key, value in own.items()} | {
        f"{APP}/{key}": value for key, value in more.items()
    }


def node_of(host: Host) -> dict[str, str]:
    """The selector of the node that a host stands for. Raises ConfigError."""
    name = host.labels.get(HOSTNAME, host.name)
    if not _LABEL.fullmatch(name):
        hint = f"labels: {{{HOSTNAME}: NAME}}, as `kubectl get nodes --show-labels` has it"
        raise ConfigError(f"host {host.name}", f"{shown(name)} is no name of a node", hint)
    return {HOSTNAME: name}


def resources(cores: int | None, memory_bytes: int, memory_max_bytes: int | None) -> Object:
    """What a pod asks for: cores (one, if the host's are not known) and memory.

    Memory is limited to what the host has, if that is known. Cores are not limited: one slow pod slows the whole
    fabric.
    """
    asked = -(-memory_bytes // 2**20)
    found: Object = {"requests": {"cpu": str(cores or 1), "memory": f"{asked}Mi"}}
    if memory_max_bytes is not None:
        found["limits"] = {"memory": f"{max(asked, memory_max_bytes // 2**20)}Mi"}
    return found


def container(name: str, arguments: Sequence[str], asked: Object, **more: Any) -> Object:
    """A container of the image that can only run, and write below RUN_DIR."""
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
    """The specification of a pod with one container. It is on the network of its host, if that is in the inventory.

    `sources`: where its files come from.
    """
    placed: Object = {} if host is None else {"nodeSelector": node_of(host), "hostNetwork": True}
    return {
        **placed,
        "dnsPolicy": "Default",  # nothing looks names up: an inventory has addresses
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
    """A source of files: `kind` is configMap or secret; `items` maps its keys to paths in the pod."""
    return {kind: {"name": name, "items": [{"key": key, "path": path} for key, path in sorted(items.items())]}}


def deployment(name: str, own: Mapping[str, str], specification: Object, annotations: Mapping[str, str]) -> Object:
    """One pod that the cluster starts again when it ends, and never runs twice at a time."""
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
