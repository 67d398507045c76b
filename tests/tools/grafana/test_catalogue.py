"""All boards: Grafana takes them, Prometheus can read them, and whoever opens one finds questions answered."""

import os
import re
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

from orchestrator.agent.metrics import series_names
from orchestrator.prometheus.configuration import CONFIGURATION, SHIPPED_PACE, SHIPPED_TARGETS
from tests.checks.source import ROOT
from tests.support.boards import BUILT_IN, annotated, expanded, expressions, metrics, mistakes, variables
from tools.grafana.board import Board
from tools.grafana.catalogue import BOARDS, FOLDER

DEPLOY = ROOT / "deploy"
each_board = pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.uid)


@each_board
def test_grafana_takes_it(board: Board) -> None:
    assert not mistakes(board.json())


@each_board
def test_every_expression_parses(board: Board) -> None:
    for expression in (*expressions(board), *annotated(board)):
        promql_parser.parse(expanded(expression, __rate_interval="20s"))


@each_board
def test_every_metric_is_there(board: Board) -> None:
    for expression in (*expressions(board), *annotated(board)):
        assert metrics(expression) <= series_names() | BUILT_IN, expression


@each_board
def test_every_expression_is_of_the_chosen_fabric(board: Board) -> None:
    for expression in (*expressions(board), *annotated(board)):
        assert expression.count("{") == expression.count('fabric="$fabric"'), expression


@each_board
def test_it_has_the_variables_that_it_uses(board: Board) -> None:
    has = {one["name"] for one in board.json()["templating"]["list"]} | {"__rate_interval"}
    used = set().union(*(variables(expression) for expression in expressions(board)))
    assert used <= has
    assert has - used <= {"datasource"}


@each_board
def test_every_panel_answers_a_question(board: Board) -> None:
    for panel in board.panels():
        assert "?" in panel.question, panel.title
        assert re.match(r"[A-Z]", panel.title)
    for row in board.rows:
        titles = [panel.title for panel in row.panels]
        assert len(set(titles)) == len(titles)


@each_board
def test_every_line_has_a_name(board: Board) -> None:
    for panel in board.panels():
        if panel.kind not in ("table", "stat"):
            assert all(query.legend for query in panel.queries), panel.title


def test_names_fit_into_addresses() -> None:
    assert all(8 <= len(board.uid) <= 40 for board in BOARDS)
    assert len({board.uid for board in BOARDS}) == len({board.title for board in BOARDS}) == len(BOARDS) == 7


def read(path: Path) -> dict[str, Any]:
    loaded = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(loaded, dict)
    return loaded


def test_provisioning_finds_boards_and_prometheus() -> None:
    services = read(DEPLOY / "compose.yaml")["services"]
    environment = services["grafana"]["environment"]
    inside = dict(volume.split(":")[1::-1] for volume in services["grafana"]["volumes"])
    top = next(path for path, outside in inside.items() if outside == "./grafana")
    assert environment["GF_PATHS_PROVISIONING"] == f"{top}/provisioning"
    (provider,) = read(DEPLOY / "grafana/provisioning/dashboards/mrcfabric.yaml")["providers"]
    assert provider["options"]["path"] == f"{top}/{Path(FOLDER).name}"
    home = Path(environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
    assert (ROOT / FOLDER / home.name).is_file()
    (source,) = read(DEPLOY / "grafana/provisioning/datasources/prometheus.yaml")["datasources"]
    listens = next(word for word in services["prometheus"]["command"] if word.startswith("--web.listen-address="))
    assert source["url"] == f"http://{listens.partition('=')[2]}"
    assert source["jsonData"]["timeInterval"] == SHIPPED_PACE.scrape


def test_compose_pins_what_it_runs() -> None:
    compose = read(DEPLOY / "compose.yaml")
    named = {volume.partition(":")[0] for one in compose["services"].values() for volume in one["volumes"]}
    assert {name for name in named if not name.startswith(".")} == set(compose["volumes"])
    for service in compose["services"].values():
        assert re.search(r":v?\d+\.\d+\.\d+$", service["image"])
    made = (ROOT / "tests/vectors/grafana/README.md").read_text(encoding="utf-8")
    minor = compose["services"]["grafana"]["image"].rpartition(":")[2].rpartition(".")[0]
    assert f"@grafana/schema@{minor}." in made


def test_compose_is_for_this_host_alone_and_changes_nothing_of_ours() -> None:
    text = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    assert set(re.findall(r"\$\{(\w+):-\w+\}", text)) == {"FABRIC_UID", "GRAFANA_PASSWORD"}
    assert text.count("$") == 3, "every variable has a default"
    services = read(DEPLOY / "compose.yaml")["services"]
    serving = {name: one for name, one in services.items() if one["network_mode"] == "host"}
    assert set(serving) == {"prometheus", "grafana"}
    assert {one["network_mode"] for one in services.values()} == {"host", "none"}
    assert "--web.listen-address=127.0.0.1:9090" in services["prometheus"]["command"]
    assert services["grafana"]["environment"]["GF_SERVER_HTTP_ADDR"] == "127.0.0.1"
    for service in serving.values():
        assert re.match(r"http://127\.0\.0\.1:\d+/", service["healthcheck"]["test"][-1])
    for service in services.values():
        for volume in service["volumes"]:
            outside, _, rest = volume.partition(":")
            assert not outside.startswith(".") or (rest.endswith(":ro") and (DEPLOY / outside).parent.is_dir())


def test_prometheus_in_the_container_finds_its_files() -> None:
    service = read(DEPLOY / "compose.yaml")["services"]["prometheus"]
    inside = {outside: path for outside, path, *_ in (volume.split(":") for volume in service["volumes"])}
    option = next(word for word in service["command"] if word.startswith("--config.file="))
    assert option == f"--config.file={inside['./prometheus']}/{CONFIGURATION}"
    found = {os.path.normpath(f"{inside['./prometheus']}/{name}") for name in SHIPPED_TARGETS}
    assert f"{inside['../out']}/demo/targets.json" in found
    assert f"--storage.tsdb.path={inside['series']}" in service["command"]
