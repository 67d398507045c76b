"""The rows of `spec_choices` that are about InfiniBand: no MRC, but the same daemons."""

from tests.checks.choice import NIC, OPTION, SWITCH, UNKNOWN, Choice
from tests.checks.choice import of as _of

LID = (
    Choice(
        "LIDs, LMC and the service level of a NIC",
        OPTION,
        "One LID per port, service level 0. With an LMC each of a port's LIDs is another way up, and a QP draws one, "
        "the same at both ends. NICs have LIDs in the order of their numbers; each plane is a subnet of its own.",
        _of(NIC, "lid_lmc", "lid_sl"),
    ),
    Choice(
        "Automatic path migration",
        OPTION,
        "Off. When asked for, each QP has a second path, by the next port or the next LID, and takes it once: when its "
        "retries are used up, when its port has lost its carrier, or when it hears from its peer (MigReq).",
        _of(NIC, "apm"),
    ),
    Choice(
        "VLs, and which service level travels on which",
        OPTION,
        "Two data VLs on every link, by the service level modulo their number. A switch does not tell inputs from one "
        "another in this. VL15 has no credit, goes first, and what finds no room there is dropped.",
        _of(SWITCH, "vls", "vl_of_sl"),
    ),
    Choice(
        "VL arbitration",
        OPTION,
        "No table of high priority, and one of low priority with a packet of 4 KiB for each VL in turn. Inputs of a VL "
        "take turns packet by packet; a packet that waits for credit is not overtaken on its VL.",
        _of(SWITCH, "vl_high", "vl_low", "vl_high_limit"),
    ),
    Choice(
        "Buffers and grants",
        UNKNOWN,
        "64 KiB per port and VL, which is what a loop of a few microseconds needs at 100 Gb/s. A packet holds its "
        "blocks from its arrival until it starts on its way out. Every block that can be granted anew is granted at "
        "once; a port of four lanes says the rest every 65,536 symbol times. What would only repeat what has arrived "
        "is left out, so that an idle fabric comes to rest.",
        _of(SWITCH, "vl_blocks", "credit_update_blocks"),
    ),
    Choice(
        "How old a packet may grow at the head of its queue",
        OPTION,
        "As opensm has it: 1.07 s between switches, 268 ms towards NICs, and after seven such drops in a row the VL "
        "drops everything for eight of these times. The head is that of one input's packets of a VL.",
        _of(SWITCH, "head_life", "head_life_nic", "vl_stall_count"),
    ),
    Choice(
        "Who writes the tables by LID",
        OPTION,
        "Nobody: they are there from the start, as a manager would write them for the fabric without faults. Or they "
        "begin empty and a subnet manager on a NIC finds the switches by directed routes, gives them LIDs and writes "
        "blocks of 64 entries. NICs have their LIDs by their numbers; a manager reads them.",
        _of(SWITCH, "routing"),
    ),
    Choice(
        "Who manages a subnet, and how often it looks",
        OPTION,
        "As opensm: a light sweep every 10 s, four requests out, each asked again after 200 ms, at most three times; a "
        "standby asks every 10 s and takes over after four polls in vain. The first NICs run managers, as many as "
        "`sm_nics` says, one for each plane's subnet; managers that begin together sort themselves out by their GUIDs.",
        _of(NIC, "sm_nics", "sm_sweep_ns", "sm_timeout_ns", "sm_retries", "sm_outstanding", "sm_poll_ns", "sm_polls"),
    ),
    Choice(
        "Adaptive routing",
        UNKNOWN,
        "Off. Per packet a T0 takes the up-link whose wire is free soonest, of equals the next one in turn; by "
        "flowlets a flow that has not paused stays. What the switches beyond have to send is not known there.",
        _of(SWITCH, "adaptive", "flowlet_ns"),
    ),
    Choice(
        "How a NIC places packets of InfiniBand that come in any order",
        UNKNOWN,
        "Makers say that it does, for switches that choose a way packet by packet, and not how a packet says where it "
        "belongs. Here each packet of a message is a WRITE Only with its own RETH, the last one marked by the "
        "solicited-event bit, so that stock dissectors read them. A packet is asked for when one behind it has waited "
        "`rc_reorder_ns`, again after as long and a round trip, `rc_retry_cnt` + 1 times, and is sent alone; after "
        "four requests in a row that are near one another the sender goes back.",
        _of(NIC, "rc_reorder_ns"),
    ),
    Choice(
        "What an InfiniBand switch does about a dead up-link",
        OPTION,
        "Nothing until the tables change. With SHIELD's first part a T0 leaves it out a millisecond later, and flows "
        "whose up-link lives stay where they are.",
        _of(SWITCH, "shield", "shield_ns"),
    ),
    Choice(
        "What an InfiniBand switch tells its neighbours",
        UNKNOWN,
        "Nothing. With `flfn` a T1 that has lost a T0 tells the others for which LIDs it has no way, ten times at "
        "intervals that double from 10 us, and as often when it has one again; they take other T1s as long as there is "
        "one. With `arn` a T1 tells who sends into more than `arn_bytes`. Makers say that, not in which bytes: notices "
        "are link control frames of our own layout. Congestion before a NIC, and links to NICs, are told to nobody.",
        _of(SWITCH, "flfn", "arn", "arn_bytes", "arn_ns"),
    ),
)
