"""The document of a placement and its text."""

import json
from dataclasses import replace

from mrcfabric.topology import Topology
from orchestrator.hosts.placement.budget import budget
from orchestrator.hosts.placement.inventory import Inventory, Rules
from orchestrator.hosts.placement.placement_view import document, refusals, render
from orchestrator.hosts.placement.placing import place
from tests.support.inventories import inventory

DEMO = Topology.demo()

WHOLE = """\
fabric demo on 3 hosts
  nics spread, switches by_plane, 0 pins, 0 exclusions, at most 1 switch per process

  host  data address  nics  t0  t1  processes  ports  memory    cores  pace
  vm1   10.0.0.1      3     6   12  21         119    189.3 MB  4      1,320
  vm2   10.0.0.2      3     6   12  21         119    189.3 MB  4      1,320
  vm3   10.0.0.3      2     4   8   14         80     146.2 MB  4      880

  vm1  h000..h002 p0..p2
  vm2  h003..h005 p3..p5
  vm3  h006..h007 p6..p7

links  86 within hosts, 42 between them
  between  links  each way, fabric time  on the wire at dilation 1,320
  vm1 vm2  18     1.8 Tb/s               1.38 Gb/s
  vm1 vm3  12     1.2 Tb/s               920.3 Mb/s
  vm2 vm3  12     1.2 Tb/s               920.3 Mb/s

frames  up to 4,280 bytes (IPv4, UDP, link header, packet of 4,096 payload)
  mtu 1500: too long; mtu_bytes: 1024 fits
  mtu 9000: they fit

pace  asked for: as fast as it goes; to be expected at full load: a dilation of 1,320
  pace of a host = the largest of CPU per second of fabric time / cores, its heaviest process / one core,
  and traffic to other hosts / its bandwidth
  on the wire = rate in fabric time x 1.0122 (headers) / dilation"""


def shown(there: Inventory, topology: Topology = DEMO) -> str:
    return render(topology.name, document(budget(place(topology, there))))


def test_the_whole_text() -> None:
    assert shown(inventory((4, 4, 4))) == WHOLE


def test_the_document_is_plain_and_says_more() -> None:
    found = document(budget(place(DEMO, inventory((4, None, 4), Rules("cores", orchestrator="vm1")))))
    assert json.loads(json.dumps(found)) == found
    assert found["rules"]["orchestrator"] == "vm1"
    assert found["hosts"][1]["cores"] is None
    assert found["pace"]["dilation_at_full_load"] is None
    assert found["pairs"][0]["wire_bps"] is None
    assert found["hosts"][0]["nodes"][-1] == "p0..p2"


def test_unknown_figures_are_question_marks() -> None:
    text = shown(inventory((None, 4)))
    assert "unknown while hosts do not tell their cores" in text
    assert "h000..h003 p0..p3" in text
    assert [line.split()[-2:] for line in text.splitlines() if line.startswith("  vm1   ")] == [["?", "?"]]


def test_a_dilation_asked_for_shows_the_cores_it_takes() -> None:
    text = shown(inventory((4, 4, 4)), replace(DEMO, dilation=2000))
    assert "cores asked  cores  pace" in text
    assert "2.6          4" in text
    assert "on the wire at dilation 2,000" in text


def test_warnings_stand_below_and_a_lone_host_has_no_pairs() -> None:
    text = shown(inventory((64, 64), Rules("pack", "pack")))
    assert text.endswith("warning: vm2: carries no node (it is not needed for this fabric)")
    assert "links  128 within hosts, 0 between them\n\nframes" in text
    assert "  vm2  nothing\n" in text


def test_many_hosts_and_notes_are_cut() -> None:
    """48 switches on 62 hosts, each of which has too small an mtu."""
    hosts = [replace(host, mtu=1500) for host in inventory((4,) * 62).hosts]
    found = document(budget(place(DEMO, Inventory(tuple(hosts), Rules("spread", "spread")))))
    text = render("demo", found)
    assert "vm41" not in text
    assert text.count("  and 22 more, --json has them\n") == 1
    assert text.endswith("warning: vm62: carries no node (it is not needed for this fabric)")
    lines = refusals(found)
    assert len(lines) == 21
    assert lines[0].startswith("mrcfabric: vm1: frames to other hosts take 4,280 bytes")
    assert lines[-1] == f"mrcfabric: and {len(found['refusals']) - 20} more, --json has them"


def test_many_pairs_are_cut() -> None:
    text = shown(inventory((4,) * 8))
    assert "  and 16 more, --json has them\n" in text
