"""Writes the folder that `kubectl apply -k` takes.

Owns the kustomization and the folder. It changes no file that somebody else has put there, and refuses a folder with
such files. The same inventory, topology and options give the same bytes. It copies keys into `secret/` and into no
other file.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from mrcfabric.errors import ConfigError
from mrcfabric.naming import shown
from orchestrator.hosts.cluster_key import ClusterKey
from orchestrator.kubernetes import pods
from orchestrator.kubernetes.pod_monitor import FILE, component, pod_monitor
from orchestrator.kubernetes.pods import Object
from orchestrator.kubernetes.workloads import Workloads

TOP: Final = "kustomization.yaml"
FIRST_LINE: Final = (
    "# Made by `mrcfabric manifests`, which makes it anew: put changes into a kustomization that names it."
)
RESOURCES: Final = ("namespace.yaml", "account.yaml", "shares.yaml", "orchestrator.yaml")
SECRET: Final = "secret"
"""Folder of the keys, kept out of version control."""
IGNORED: Final = ".gitignore"
MONITOR: Final = "podmonitor"
FILES: Final = "files"
FILE_BYTES_MAX: Final = 900_000
"""Size of all files of a fabric together. A ConfigMap holds a MiB."""
WIDTH: Final = 120
SHORT: Final = 90
"""Longest list or table that is written on one line, in characters."""

_NAMESPACE: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_IMAGE: Final = re.compile(
    r"(?P<name>[a-z0-9][a-zA-Z0-9._/-]*(:\d+/[a-z0-9._/-]+)?)"
    r"(:(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?(@(?P<digest>sha256:[0-9a-f]{64}))?"
)


def files_of(workloads: Workloads, files: Mapping[str, bytes], image: str, namespace: str) -> dict[str, bytes]:
    """Every file of the folder but the keys: path -> content. `files`: for the pods, by name. Raises ConfigError."""
    if not _NAMESPACE.fullmatch(namespace):
        raise ConfigError(f"--namespace {namespace}", "is no name of a namespace", "lower-case letters, digits and -")
    if (size := sum(map(len, files.values()))) > FILE_BYTES_MAX:
        raise ConfigError("files of the pods", f"have {size:,} bytes", f"{FILE_BYTES_MAX:,} go into a ConfigMap")
    objects: dict[str, Sequence[Object]] = {
        "namespace.yaml": [_namespace(namespace)],
        "account.yaml": [_account()],
        "shares.yaml": workloads.shares(),
        "orchestrator.yaml": [workloads.orchestrator()],
    }
    found = {name: text(several).encode() for name, several in objects.items() if several}
    if workloads.stands:
        found[f"{MONITOR}/{TOP}"] = text([component(namespace)]).encode()
        found[f"{MONITOR}/{FILE}"] = text([pod_monitor(workloads)]).encode()
    found |= {f"{FILES}/{name}": content for name, content in files.items()}
    top = _kustomization(
        workloads, sorted(files), _image(image), namespace, [name for name in RESOURCES if name in found]
    )
    found[TOP] = f"{FIRST_LINE}\n{text([top])}".encode()
    found[IGNORED] = f"/{SECRET}/\n".encode()
    return found


def text(objects: Sequence[Object]) -> str:
    """Objects as one YAML file."""
    return yaml.dump_all(objects, Dumper=_Dumper, sort_keys=False, width=WIDTH, default_flow_style=None)


class _Dumper(yaml.SafeDumper):
    """Writes a repeated object in full each time, since readers do not follow an alias, and short ones on one line."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_sequence(self, tag: str, sequence: Any, flow_style: bool | None = None) -> yaml.SequenceNode:
        return super().represent_sequence(tag, sequence, flow_style if _is_short(sequence) else False)

    def represent_mapping(self, tag: str, mapping: Any, flow_style: bool | None = None) -> yaml.MappingNode:
        return super().represent_mapping(tag, mapping, flow_style if _is_short(mapping) else False)


def _is_short(several: Any) -> bool:
    return len(str(several)) <= SHORT


def _namespace(name: str) -> Object:
    # A cluster calls a pod on the network of its node "privileged", even if it has dropped all capabilities.
    labels = {"pod-security.kubernetes.io/enforce": "privileged"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def _account() -> Object:
    metadata = {"name": pods.APP}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata, "automountServiceAccountToken": False}


def _image(image: str) -> Object:
    """The entry of an image in a kustomization. Raises ConfigError."""
    if not (parts := _IMAGE.fullmatch(image)):
        raise ConfigError(f"--image {image}", "is no name of an image", "as registry.example/mrcfabric:0.1.0")
    found: Object = {"name": pods.IMAGE, "newName": parts["name"]}
    if parts["digest"]:
        return found | {"digest": parts["digest"]}
    return found | {"newTag": parts["tag"] or "latest"}


def _kustomization(
    workloads: Workloads, files: Sequence[str], image: Object, namespace: str, resources: Sequence[str]
) -> Object:
    keys = [f"{item}={SECRET}/{item}" for item in sorted(workloads.keys.by_item)]
    secrets = [{"name": pods.KEYS, "files": keys}] if keys else []
    return {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": namespace,
        "resources": list(resources),
        "images": [image],
        "configMapGenerator": [{"name": pods.APP, "files": [f"{FILES}/{name}" for name in files]}],
        "secretGenerator": secrets,
    }


# Writing.


def write(folder: Path, files: Mapping[str, bytes], workloads: Workloads) -> None:
    """Write the folder and the keys in it. Removes files that an earlier time wrote and this one does not.

    Raises ConfigError when a key cannot be read or the folder holds other things, and then changes nothing; also when
    it cannot write.
    """
    for key in workloads.keys.by_item.values():
        ClusterKey.read(key.file)
    keys = {f"{SECRET}/{item}": key.file.read_bytes() for item, key in workloads.keys.by_item.items()}
    try:
        found = sorted(_found(folder)) if folder.exists() else []
        _refuse_others(folder, found)
        for name in found:
            if name not in files and name not in keys:
                (folder / name).unlink()
        for name, content in files.items():
            _put(folder / name, content, 0o644)
        for name, content in keys.items():
            _put(folder / name, content, 0o600)
    except OSError as error:
        raise ConfigError(f"--out {folder}", error.strerror or str(error), "name a folder that you may write") from None


def _found(folder: Path) -> Iterator[str]:
    for path in folder.rglob("*"):
        if not path.is_dir():
            yield path.relative_to(folder).as_posix()


def _refuse_others(folder: Path, found: Sequence[str]) -> None:
    """Raises ConfigError for a folder that holds a file that is not ours."""
    if not found:
        return
    hint = "name an empty or a new folder"
    top = folder / TOP
    if not top.is_file() or not top.read_text(errors="replace").startswith(FIRST_LINE):
        raise ConfigError(f"--out {folder}", "holds files that are no manifests of ours", hint)
    ours = {TOP, IGNORED, *RESOURCES, f"{MONITOR}/{TOP}", f"{MONITOR}/{FILE}"}
    for name in found:
        if name not in ours and Path(name).parts[0] not in (SECRET, FILES):
            raise ConfigError(f"--out {folder}", f"holds {shown(name)}, which is not ours", hint)


def _put(path: Path, content: bytes, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o755 if mode & 0o077 else 0o700)
    path.unlink(missing_ok=True)  # other users may be allowed to read an old file
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
        file.write(content)
