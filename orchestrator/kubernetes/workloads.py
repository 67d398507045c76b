"""The pods of a fabric in a cluster: one for the share of each host, and one for the orchestrator.

Pure. Owns the commands of the pods, their ports and their probes. A share's pod runs `mrcfabric share` on the network
of its node. The orchestrator's runs `mrcfabric up`, for good, or `mrcfabric run`, once.
`orchestrator.kubernetes.folder` makes their files, and `orchestrator.kubernetes.pods` the parts that all pods have.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from mrcfabric.errors import ConfigError
from orchestrator.hosts.build import sites_of
from orchestrator.hosts.placement.budget import Budget
from orchestrator.hosts.placement.inventory import Host
from orchestrator.hosts.placement.layout import Layout, check_size
from orchestrator.kubernetes import pods
from orchestrator.kubernetes.keys import Keys
from orchestrator.kubernetes.pods import FILES_DIR, Object
from orchestrator.process.ports import PORT_MIN, SLOT_PORTS

PORT_BASE: Final = -(-PORT_MIN // SLOT_PORTS) * SLOT_PORTS
"""The default first port of the fabric on every host: where a search would begin."""
NODE_PORTS: Final = range(30_000, 32_768)
"""A cluster sends packets for these ports elsewhere."""
LEADER: Final = "orchestrator"
LEADER_BYTES: Final = 256 * 2**20
"""Memory of the orchestrator, without its daemons."""
INVENTORY: Final = "hosts.yaml"
FINAL_CODES: Final = (1, 3)
"""Exit codes that end the job. A run that missed an expectation, or was not valid, would do so again.

A run that could not begin, because the shares were not there yet, is tried again."""
TRIES: Final = 6


@dataclass(frozen=True, slots=True)
class Leading:
    """What the orchestrator runs."""

    verb: Literal["up", "run"]
    file: str
    """Name of the file of the topology or scenario in a pod; "": the topology of the demonstration."""
    settings: tuple[str, ...]
    """Each `key=value`, as for `--set`."""
    nodes_per_process: int | None = None


class Workloads:
    """The workloads of one placement."""

    def __init__(self, budget: Budget, leading: Leading, port_base: int) -> None:
        """Raises ConfigError for a placement that a cluster cannot run."""
        placement = budget.placement
        sites = sites_of(placement)
        check_size(placement.topology, sites)
        self.layout = Layout(placement.topology, "none", sites, port_base=port_base)
        self.fabric = placement.topology.name
        self._budget = {one.host.name: one for one in budget.hosts}
        self._leading = leading
        leader, *others = self.layout.sites.sites
        self.hosts = [placement.inventory.host(site.name) for site in others]
        """The hosts with a share of their own."""
        self.leader = next((host for host in placement.inventory.hosts if host.name == leader.name), None)
        """The orchestrator's host, if the inventory has it."""
        self.keys = Keys(placement.inventory.path, self.hosts)
        self._check_ports()
        self._check_names()

    def _check_ports(self) -> None:
        base, end = self.layout.port_base, self.layout.port_base + self.layout.port_count
        if base < PORT_MIN or end > NODE_PORTS.start:
            hint = f"--port-base {PORT_MIN} to {NODE_PORTS.start - self.layout.port_count}, or a smaller fabric"
            within = f"{PORT_MIN}..{NODE_PORTS.start - 1}, below the node ports of a cluster"
            raise ConfigError(f"--port-base {base}", f"ports {base}..{end - 1} are not within {within}", hint)

    def _check_names(self) -> None:
        owners: dict[str, Host] = {}
        for host in self.hosts:
            owner = owners.setdefault(pods.plain(host.name), host)
            if owner is not host:
                what = f"and {host.name} would both be share-{pods.plain(host.name)}"
                raise ConfigError(f"host {owner.name}", what, "names that differ in more than case and signs")

    @property
    def stands(self) -> bool:
        """Whether the fabric stays up, so that it can be scraped."""
        return self._leading.verb == "up"

    def shares(self) -> list[Object]:
        """A deployment for every host but the orchestrator's."""
        return [self._share(host) for host in self.hosts]

    def _share(self, host: Host) -> Object:
        service, one = host.service, self._budget[host.name]
        called = service.address or host.control
        address = f"[{called}]" if ":" in called else called
        key = self.keys.of(host)
        arguments = ["share", "--listen", f"{address}:{service.port}", "--key", f"{FILES_DIR}/{key.path}"]
        asked = {"tcpSocket": {"host": called, "port": "share"}}
        container = pods.container(
            "share",
            [*arguments, "--run-dir", pods.RUN_DIR],
            pods.resources(host.cores, one.memory_bytes, host.memory_bytes),
            ports=[{"name": "share", "containerPort": service.port}],
            startupProbe={**asked, "periodSeconds": 1, "failureThreshold": 60},
            readinessProbe={**asked, "periodSeconds": 5},
            livenessProbe={**asked, "periodSeconds": 10, "failureThreshold": 6},
        )
        files = [pods.projected("secret", pods.KEYS, {key.item: key.path})]
        name = pods.plain(host.name)
        own = pods.labels("share", self.fabric, host=name)
        return pods.deployment(f"share-{name}", own, pods.pod(container, host, files), {})

    def orchestrator(self) -> Object:
        """The orchestrator: a deployment for `up`, a job for `run`."""
        own = pods.labels(LEADER, self.fabric)
        return self._standing(own) if self.stands else self._once(own)

    def _arguments(self) -> list[str]:
        leading = self._leading
        words = [leading.verb, *([f"{FILES_DIR}/{leading.file}"] if leading.file else [])]
        words += ["--inventory", f"{FILES_DIR}/{INVENTORY}", "--engine", "service"]
        if leading.nodes_per_process is not None:
            words += ["--nodes-per-process", str(leading.nodes_per_process)]
        return words + [word for setting in leading.settings for word in ("--set", setting)]

    def _resources(self) -> Object:
        if self.leader is None:
            return pods.resources(None, LEADER_BYTES, None)
        host, one = self.leader, self._budget[self.leader.name]
        return pods.resources(host.cores, LEADER_BYTES + one.memory_bytes, host.memory_bytes)

    def _pod(self, container: Object) -> Object:
        files = {name: name for name in (INVENTORY, self._leading.file) if name}
        keys = {item: key.path for item, key in self.keys.by_item.items()}
        sources = [pods.projected("configMap", pods.APP, files), pods.projected("secret", pods.KEYS, keys)]
        return pods.pod(container, self.leader, sources)

    def _standing(self, own: Mapping[str, str]) -> Object:
        """The fabric stays up as long as the pod. Prometheus reads its metrics at the pod's address."""
        port = self.layout.http_port
        asked = {"httpGet": {"path": "/sd", "port": "metrics"}}
        container = pods.container(
            LEADER,
            [*self._arguments(), "--port-base", str(self.layout.port_base), "--metrics-address", "$(POD_IP)"],
            self._resources(),
            env=[{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
            ports=[{"name": "metrics", "containerPort": port}],
            startupProbe={**asked, "periodSeconds": 2, "failureThreshold": 60},
            readinessProbe={**asked, "periodSeconds": 5, "timeoutSeconds": 2},
            livenessProbe={**asked, "periodSeconds": 10, "timeoutSeconds": 5, "failureThreshold": 6},
        )
        scraped = {"scrape": "true", "port": str(port), "path": "/metrics"}
        annotations = {f"prometheus.io/{key}": value for key, value in scraped.items()}
        return pods.deployment(LEADER, own, self._pod(container), annotations)

    def _once(self, own: Mapping[str, str]) -> Object:
        """The job runs the scenario once. It succeeds when all expectations hold."""
        container = pods.container(LEADER, [*self._arguments(), "--plain"], self._resources())
        codes = {"containerName": LEADER, "operator": "In", "values": list(FINAL_CODES)}
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": LEADER, "labels": dict(own)},
            "spec": {
                "backoffLimit": TRIES,
                "podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": codes}]},
                "template": {
                    "metadata": {"labels": dict(own)},
                    "spec": {"restartPolicy": "Never", **self._pod(container)},
                },
            },
        }
