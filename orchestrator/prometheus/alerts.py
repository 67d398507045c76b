"""The alerts: what somebody who runs a fabric should be told, why, and what to do about it.

Owns conditions, thresholds and texts. `tools.prometheus.rule_cases` has unit tests for each. An injected fault raises
the same alerts as the real fault would; `mrc_agent_fault_active` shows which faults are in force.
"""

from typing import Final

from orchestrator.prometheus.rule import Alert

EVS_RETIRED_SHARE = 0.10
PLANE_LOST_SHARE = 0.90
PLANE_BALANCE_MIN = 0.5
BALANCED_LOAD_MIN = 0.01
"""Goodput, as a share of what the NICs' ports can carry, below which planes are not compared: probes alone go to bad
EVs and make the planes uneven."""
RETRANSMIT_SHARE = 0.05
DILATION_OVER_ASKED = 2
"""How many times slower than asked a fabric must be to count as overloaded; `auto` asks for no dilation."""
ANSWER_SECONDS_MAX = 0.5
"""Wall time in which a daemon on a machine with spare CPU has answered a hundred times over."""

_FABRIC = "{{ $labels.fabric }}"
_NODE = f"{{{{ $labels.node }}}} of {_FABRIC}"
_PLANE = f"plane {{{{ $labels.plane }}}} of {_FABRIC}"
_SHARE = "{{ $value | humanizePercentage }}"

_PATHS: Final = (
    Alert("MrcEvsRetired", f"plane:mrc_evs_retired:ratio > {EVS_RETIRED_SHARE}", "soon", "warning",
          f"{_SHARE} of the EVs in {_PLANE} are retired",
          "More EVs of the plane than one bad link explains are in ASSUMED_BAD or DENIED. Traffic avoids the paths "
          "that they stand for; goodput suffers when the rest of the plane cannot take it.",
          "1. `mrcfabric fault list`: was it injected? 2. `mrcfabric ev list NIC` for a NIC with retired EVs: the "
          "cause of each, and which links their paths share. 3. `mrcfabric mapper` names the bad links."),
    Alert("MrcPlaneLost",
          f"plane:mrc_evs_retired:ratio > {PLANE_LOST_SHARE} "
          f"or 1 - avg by (fabric, plane) (mrc_nic_port_up) > {PLANE_LOST_SHARE}", "soon", "critical",
          f"{_PLANE} carries nothing: {_SHARE} of its EVs, or of the NICs' ports in it, are out of use",
          "Nearly every EV of the plane is in ASSUMED_BAD or DENIED, or nearly every NIC has lost its port there. QPs "
          "with EVs live on the other planes; one of RC keeps to its port, unless it has a second path.",
          "1. `mrcfabric fault list`. 2. MrcNicPortDown and MrcDaemonGone say whether its T0s or the cables of the "
          "NICs are gone. 3. Jobs go on as long as another plane is left; drain them before that one is touched."),
    Alert("MrcPlaneImbalance",
          f"plane:mrc_balance:ratio < {PLANE_BALANCE_MIN} and on (fabric) fabric:mrc_goodput:bits_per_second "
          f"> on (fabric) {BALANCED_LOAD_MIN} * 8 * sum by (fabric) (mrc_nic_port_rate_bytes_per_second) "
          "unless on (fabric) mrc_nic_rc_qps_slowed",
          "settled", "warning", f"{_PLANE} carries {_SHARE} of what a plane carries on average",
          "NICs send much less into this plane than into the others, though every QP has as many EVs in each. Only a "
          "fabric with work is asked, and none of RC, whose QPs keep to one plane each.",
          "1. Retired EVs or ports down in the plane explain it: see their alerts. 2. If there are none, compare "
          "`plane:mrc_marked:ratio` of the planes: marks make NICs skip EVs. 3. Look for a slow link: "
          "`plane:mrc_utilisation:max` near 1 while the plane carries little."),
    Alert("MrcNicPortDown", "max by (fabric, plane, node) (mrc_nic_port_up) == 0", "soon", "warning",
          f"port of plane {{{{ $labels.plane }}}} of {_NODE} has no carrier",
          "The NIC has lost a plane, and nothing is sent to or from it there. With MRC it has told its peers; a QP of "
          "RC whose port it is waits for it, or takes another one where settings let it.",
          "1. `mrcfabric fault list`. 2. Is its T0 alive (MrcDaemonGone)? A dead T0 takes the port of every NIC below "
          "it. 3. `mrcfabric fault clear` heals what was injected."),
    Alert("MrcSwitchPortDown", "max by (fabric, plane, node, port, peer, towards) (mrc_switch_port_up) == 0", "soon",
          "warning", f"port {{{{ $labels.port }}}} of {_NODE} towards {{{{ $labels.peer }}}} is down",
          "The cable is cut in this direction; on InfiniBand the switch behind it may be dead. Where routes are fixed "
          "the switch goes on sending into it until NICs avoid the paths through it. Where switches repair or learn "
          "they take another port, and on InfiniBand a subnet manager, if there is one, writes other tables.",
          "1. `mrcfabric fault list`. 2. With EVs, watch MrcEvsRetired of the plane: the NICs should retire those "
          "through this port and no others. Else `mrcfabric events` should say that the port has left its group. "
          "3. `mrcfabric fault clear` heals what was injected."),
)  # fmt: skip

_TRANSPORT: Final = (
    Alert("MrcQpError",
          'sum by (fabric, node) (mrc_nic_qps{state="error"}) > 0 '
          "or sum by (fabric, node) (increase(mrc_nic_qp_errors_total[W])) > 0", "at once", "critical",
          f"a QP of {_NODE} went into error",
          "A QP gave up, and is still there or was until just now: its retries are spent, or its peer did what the "
          "protocol forbids. Its application has been told, and will not get further on this QP.",
          "1. `mrcfabric events NODE` names the QP and the reason. 2. Is the peer alive (MrcDaemonGone) and "
          "reachable over any plane (MrcPlaneLost)? 3. If the peer is well, this is a defect: keep the run folder."),
    Alert("MrcRetransmitStorm", f"node:mrc_retransmits:ratio > {RETRANSMIT_SHARE}", "soon", "warning",
          f"{_SHARE} of the data packets of {_NODE} are retransmissions",
          "The NIC sends a large part of its packets again. Losses or trims are frequent on paths that it still uses.",
          "1. `mrc_nic_retransmits_total` by `cause`: `trim` and `nack` mean congestion, `gap` and `timeout` mean "
          "loss. 2. Congestion: `plane:mrc_trimmed:ratio`, and who sends to whom. 3. Loss: "
          "`mrc_switch_port_drops_total` and `mrc_nic_port_drops_total` by `reason`."),
    Alert("MrcTrimmedPacketsLost",
          "sum by (fabric, plane, node) (rate(mrc_switch_port_trim_dropped_packets_total[W])) > 0", "at once",
          "warning", f"{_NODE} drops trimmed packets",
          "The control queue is full: what was cut short instead of being dropped is dropped after all, and its "
          "sender learns of it by a gap or a timeout only.",
          "1. `mrc_switch_port_control_queue_bytes_max` of the switch. 2. How many senders meet at the port (incast)? "
          "3. Raise the control queue of the switches in the topology, or lower the number of senders."),
    Alert("MrcNoProgress",
          "sum by (fabric) (mrc_nic_inflight_bytes) > 0 and on (fabric) fabric:mrc_goodput:bits_per_second == 0",
          "settled", "critical", f"{_FABRIC}: packets are in flight and nothing arrives",
          "Time goes on and NICs have payload in flight, but no new byte has been placed anywhere.",
          "1. `mrcfabric fault list`: is the receiver cut off on all planes? 2. `mrcfabric events` for the last "
          "transitions. 3. QPs end in error when their retries are spent: MrcQpError follows, or this is a defect."),
    Alert("MrcWrongBytes", "sum by (fabric, node, program, kind) (mrc_nic_program_wrong_bytes_total) > 0", "at once",
          "critical", f"program {{{{ $labels.program }}}} found wrong bytes at {_NODE}",
          "What arrived in memory is not what was sent. There is no fault for which this may happen.",
          "1. Stop and keep the run folder: this is a defect. 2. `mrcfabric events NODE` around the step. "
          "3. Run the same scenario in the simulator with its seed; the trace digests tell where they part."),
)  # fmt: skip

_ROUTING: Final = (
    Alert("MrcRoutingSessionDown",
          'sum by (fabric, plane, node) (mrc_switch_routing_sessions{state!="Established"}) > 0', "soon", "warning",
          f"{_NODE} has lost {{{{ $value }}}} of its BGP sessions",
          "A neighbour is dead or cut off, its routing core hangs, or the session was shut down. What the switch sent "
          "by it goes elsewhere once tables are written.",
          "1. `mrcfabric fault list`. 2. `mrcfabric events NODE --kind routing_session` says which and why; `mrcfabric "
          "events --fault ID` who knew when. 3. `mrcfabric switch show NODE --routes`: does BFD hear the neighbour? "
          "Then its routing core is in trouble, and not the link."),
    Alert("MrcRoutingUnrest",
          'sum by (fabric, plane) (increase(mrc_switch_routing_withdrawals_total{direction="in"}[W])) > 0', "settled",
          "warning", f"routes of {_PLANE} are taken back again and again",
          "Withdrawals have come for longer than one fault explains: a session or a link flaps, or a switch takes back "
          "what it has told. Every time tables are written and flows move.",
          "1. `mrcfabric fault list`. 2. `mrcfabric events --kind routes_heard`: who takes what back? 3. A session "
          "that flaps: `mrcfabric events --kind routing_session`. 4. `switch.bgp_dampening` leaves such routes out."),
    Alert("MrcRoutesDamped", "sum by (fabric, plane, node) (mrc_switch_routing_damped_routes) > 0", "at once",
          "warning", f"{_NODE} leaves {{{{ $value }}}} routes out because they flapped",
          "Damping keeps ways from use for minutes after they have become good; the others carry their load.",
          "1. `mrcfabric events NODE --kind route_damped`: which routes, with which penalty. 2. What flapped? See "
          "MrcRoutingUnrest. 3. RFC 7196 asks for a threshold of 6,000 (`switch.bgp_dampening_suppress`)."),
    Alert("MrcTableBehind", "max by (fabric, plane, node) (mrc_switch_routing_waiting_prefixes) > 0", "settled",
          "warning", f"the table of {_NODE} is {{{{ $value }}}} prefixes behind",
          "The switch knows better ways than it forwards by: writing takes long, or changes come faster.",
          "1. `mrcfabric switch show NODE --routes` shows what stands in the table. 2. `switch.fib_write_ns` times the "
          "prefixes is what a whole table takes. 3. Do changes never end? See MrcRoutingUnrest."),
)  # fmt: skip

_EMULATION: Final = (
    Alert("MrcDaemonGone", "max by (fabric, plane, role, node) (mrc_agent_node_up) == 0", "at once", "critical",
          f"the daemon of {_NODE} does not run",
          "The process of the node has ended: a crash that somebody asked for, or one that nobody did.",
          "1. `mrcfabric status` says whether it DIED by itself. 2. `mrcfabric logs NODE` has its last words. "
          "3. `mrcfabric fault clear` starts it anew."),
    Alert("MrcDaemonSilent",
          'max by (fabric, plane, role, node) (up{role=~"nic|t0|t1"}) == 0 '
          "and on (fabric, node) mrc_agent_node_up == 1", "settled", "warning",
          f"the daemon of {_NODE} runs and does not answer",
          "The process lives, and its agent gets no counters from it in time.",
          "1. Is its control channel cut (`mrcfabric fault list`)? 2. Is the machine overloaded "
          "(MrcEmulationOverloaded)? 3. Is the process stopped? `mrcfabric status` shows SILENT and STALLED nodes."),
    Alert("MrcAgentGone", 'max by (fabric, host) (up{role="agent"}) == 0', "settled", "critical",
          f"the agent of {_FABRIC} on {{{{ $labels.host }}}} does not answer",
          "The agent has ended without taking its targets away, or hangs. Its daemons end with it.",
          "1. `mrcfabric status`. 2. `mrcfabric logs agent`. 3. `mrcfabric down` sweeps what is left."),
    Alert("MrcEmulationNotFaithful", "max by (fabric) (mrc_agent_valid) == 0", "at once", "critical",
          f"the figures of {_FABRIC} are not valid",
          "The machine lost frames of its own, or handled too many after their time. What the fabric has shown since "
          "the start must not be believed.",
          "1. `mrcfabric status` gives the share of late frames and the host drops. 2. Raise the dilation, pack the "
          "switches of a plane (`--pack plane`), or take a smaller fabric. 3. Begin the run again: it does not heal."),
    Alert("MrcEmulationOverloaded",
          f"fabric:mrc_dilation:ratio > on (fabric) ({DILATION_OVER_ASKED} * mrc_agent_dilation_nominal > 0) "
          f"or on (fabric) fabric:mrc_answer_seconds:max > {ANSWER_SECONDS_MAX}", "settled", "warning",
          f"the machine is too busy for {_FABRIC}",
          "Fabric time goes much slower than asked for, or daemons take long to answer. Results stay exact; they take "
          "longer, and Prometheus may miss scrapes.",
          "1. `fabric:mrc_dilation:ratio` beside `mrc_agent_dilation_nominal`. 2. What else runs on the machine? "
          "3. Ask for a higher dilation, pack the switches of a plane, or scrape less often."),
    Alert("MrcFabricStalled", "mrc_agent_time_running == 1 and on (fabric) fabric:mrc_fabric_time:rate == 0",
          "settled", "critical", f"fabric time of {_FABRIC} stands still though work is pending",
          "Every node waits for the horizon of one that does not move.",
          "1. `mrcfabric status` names the node that STALLED. 2. `mrcfabric logs NODE`. 3. Was its process stopped "
          "(`kill -CONT`)? Otherwise crash it: the others go on without it."),
)  # fmt: skip

ALERTS: Final = {"paths": _PATHS, "transport": _TRANSPORT, "routing": _ROUTING, "emulation": _EMULATION}
"""Subject -> its alerts."""
