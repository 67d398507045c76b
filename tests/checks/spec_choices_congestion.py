"""The rows of `spec_choices` that are about congestion control and switches."""

from tests.checks.choice import CONFLICT, DEVIATION, NIC, OPTION, SWITCH, UNKNOWN, WIRE, Choice
from tests.checks.choice import of as _of

CONGESTION = (
    Choice(
        "Congestion control: NSCC, and what else a vendor adds",
        OPTION,
        "NSCC; a fixed window that trims push down; others by name (`nicd/core/congestion/policies.py`).",
        _of(NIC, "congestion", "cwnd_bytes", "cwnd_trim_response"),
    ),
    Choice(
        "Whom a congestion context serves: a destination, or one plane of it",
        DEVIATION,
        "One plane of one destination. The texts have one context per destination and describe one network; the planes "
        "are networks of their own. A window that they share goes to the slowest, whose packets stay in it longest: "
        "with half of the T1s of one plane of four gone 0.58 of line are left instead of 0.875. `destination` gives "
        "the published one.",
        _of(NIC, "congestion_scope"),
    ),
    Choice(
        "A plane whose round trips are longer than the topology says",
        DEVIATION,
        "The base RTT of its context follows upwards, too: else its largest window is for a part of its rate. How long "
        "a plane is, endpoint EV probes tell: a request may travel in any class (2.6), and in the control class it "
        "passes the queues. Round trips of data cannot tell a length from a queue that never empties, so they only "
        "say when to ask, and a plane found longer is probed twice more (`nicd/core/congestion/probed_lengths.py`). "
        "Planes that are longer alike are late beside the base RTT alone, and make acknowledgements late, too. "
        "UET has no packet between two NICs: there two spans without a mark are believed, or at once a "
        "jump by two base RTTs (`guessed_lengths.py`). At three base "
        "RTTs more the window begins with a product. It grows by so much within a round trip, step by step; if it more "
        "than doubles, up to what the fastest other plane has or half of it, and further only when nothing was marked "
        "(`nicd/core/congestion/paced_growth.py`). The proportional increase is as much greater as the round trip is "
        "longer.",
        _of(NIC, "base_rtt_compared", "length_probe_gap_ns"),
    ),
    Choice(
        "A round trip whose acknowledgement came back on a slow plane",
        DEVIATION,
        "Counts without what that plane is known to be longer, and where its acknowledgements come late "
        "all the same it tells the window nothing. An acknowledgement waits for the packet on the wire, at a quarter "
        "of the rate as long as for four at each hop; the plane of the packet has no queue "
        "(`nicd/core/congestion/ways_back.py`). Our own acknowledgements leave such a plane out, too, in a plane also "
        "the paths that own data found longer, or that get fewer than 3/4 of their turns.",
        _of(NIC, "base_rtt_compared", "reverse_lag_ns"),
    ),
    Choice(
        "The constants of NSCC, for a NIC of several planes and a base RTT that is not 12 us",
        UNKNOWN,
        "Derived: BDP of the planes that a context serves, b = target / base RTT "
        "(`nicd/core/congestion/nscc_constants.py`). The limit of about no delay, an absolute 1 us elsewhere, is 1/12 "
        "base RTT.",
        _of(
            NIC,
            "max_cwnd_bytes",
            "target_delay_ns",
            "alpha_bytes",
            "fi_bytes",
            "fi_scale_ppt",
            "fast_delay_ns",
            "eta_bytes",
            "adjust_bytes_threshold",
            "adjust_period_threshold_ns",
            "gamma_ppt",
            "max_md_jump_ppt",
            "delay_avg_samples",
        ),
    ),
    Choice(
        "Quick adapt: its span after a pause, and trims of packets that were in flight when it ran",
        UNKNOWN,
        "A window that has run empty ends the span. After a silence of a second span the next one lasts two: nothing "
        "left meanwhile, so that little arrives says nothing. Those trims neither cut nor trigger: they are in the "
        "verdict.",
        _of(NIC, "disable_qa", "qa_gate", "qa_threshold_ns"),
    ),
    Choice(
        "Quick adapt: its span where the delay stays above the target",
        DEVIATION,
        "As long as the round trip is. Without marks on the last hop a queue stays where it trims; base RTT + target, "
        "as published, then cuts whoever is below the gate again and again, and a long incast becomes unfair.",
        _of(NIC, "qa_measured"),
    ),
    Choice(
        "A late packet without a mark, where the last hop does not mark",
        DEVIATION,
        "It has met the receiver's queue: the window gives way as to a mark, by this delay, once per round trip. Fair "
        "increase, as published for networks where every queue marks, has n senders grow until each is trimmed: at 15 "
        "to 1 a third of the packets are sent again. A delay beyond 2 base RTT, or one that stays at a window of two "
        "packets, is the path's own (`nicd/core/congestion/lateness.py`).",
        _of(NIC, "late_is_congestion", "late_delay_ns_max"),
    ),
    Choice(
        "How many late packets without a mark tell of a full receiver",
        DEVIATION,
        "Four in a row, where a window fills its port alone and few of its packets are marked; else the first. At a "
        "few packets per bandwidth-delay product sprayed packets meet by chance for as long as the target.",
        _of(NIC, "late_row"),
    ),
    Choice(
        "Round trips that are late because the delay of links varies",
        DEVIATION,
        "A queue changes little from packet to packet. Where round trips in a row, less than two base RTTs apart, "
        "differ by much more than sprayed packets do by chance, twelve times what they differ by on median, less two "
        "targets, comes off each delay. Otherwise windows close on jitter: 0.24 to 0.63 of line with 10 us on each "
        "link at 100 Gb/s.",
        _of(NIC, "late_jitter_times"),
    ),
    Choice(
        "An EV whose packet was judged lost and arrives late",
        DEVIATION,
        "It comes back at once, with all EVs of its path that were accused while that packet was under way: the path "
        "is longer than was known. The texts let probes alone bring an EV back. An acknowledgement that comes in less "
        "than a base RTT after a retransmission is taken for that of the first transmission. So is one by which the "
        "receiver had placed fewer bytes (rcvd_bytes) than when the retransmission itself was acknowledged.",
    ),
    Choice(
        "A path that is longer than the others of its plane",
        UNKNOWN,
        "What its shortest round trips are longer than those of the shortest path, without a mark, is taken off its "
        "round trips, and the largest window grows by the mean over the paths. Else the length would count as the "
        "receiver's queue: one of four T1s that is 12 us longer took two thirds of its plane. It counts from 3/4 base "
        "RTT on, and from 1/4 on where many packets show it. A smaller difference, or one of few packets, may be "
        "chance: taken for a length it made incasts unfair. From a mean of half a base RTT on, the proportional "
        "increase is as much greater as the round trip is longer. At three base RTTs more than was known the window "
        "begins anew, with a product: no queue is so long. It is reduced once in a base RTT and the mean of these "
        "lengths, as published once in a base RTT: what left before tells nothing new. What endpoint EV probes in the "
        "control class do not confirm is a queue, marked or not (`nicd/core/mrc/path_lengths.py`). A path with "
        "marks counts as longer where they say 7/8 of what data do.",
        _of(NIC, "path_shares", "path_late_ns", "length_probe_gap_ns"),
    ),
    Choice(
        "The largest window where a bandwidth-delay product is a few packets",
        DEVIATION,
        "One product, what waits for its SACK, and four packets, where that is more than the published 1.5 products: "
        "at 25 Gb/s and 1 us per link 18.6 packets instead of 15.9. The base RTT knows one packet alone; in a stream "
        "others wait in the sender's port, for their SACK, and before a SACK on its way. The first window is as "
        "published.",
        _of(NIC, "cwnd_spare_packets"),
    ),
    Choice(
        "The largest window of one that stays full",
        DEVIATION,
        "Half as much again as the largest one else, which does not fill a plane whose links are slow, that loses "
        "packets, or whose slow paths hold what others could send. A window grows beyond it only while it is full, and "
        "falls back after four round trips in which it was not: others find no larger queue of a flow that was alone "
        "when they come. The first window is as published.",
        _of(NIC, "cwnd_full_ppt"),
    ),
    Choice(
        "The window's floor",
        DEVIATION,
        "1/32 MTU, published is one: a packet then leaves every MTU / window round trips, one at a time. With a floor "
        "of a packet 127 senders on one plane offer more than two round trips of its link hold.",
        _of(NIC, "cwnd_bytes_min"),
    ),
    Choice(
        "The part of a small window that is no whole packet",
        DEVIATION,
        "Below eight packets it is sent now and then, so that a window leaves per round trip on average. The text "
        "sends while a whole packet fits: 1.0 and 1.9 packets have one rate then, and where a product is ten packets "
        "four senders stay as unequal as chance has made them.",
        _of(NIC, "cwnd_paced_packets"),
    ),
    Choice(
        "What makes the windows equal of those who share a queue, a receiver's or a fabric link's",
        DEVIATION,
        "A smaller window grows up to a longer delay: a tenth of the target more for each time that it has halved, "
        "from what fills port and queue. Marks reduce it by what is above that delay. All senders see one delay, and "
        "eta, the published means, takes a hundred round trips. Trims of packets that left a larger window take it "
        "down to one packet and no further.",
        _of(NIC, "target_octave_ppt"),
    ),
    Choice(
        "Trims and the retry budget",
        DEVIATION,
        "A thousand trims of a packet are free, further ones count, as all NACKs do in the text: a trimmed header says "
        "that the receiver lives, and a long incast of a healthy fabric would end QPs. So does an answer of the peer "
        "since a packet left whose loss later packets show or a full queue explains, where switches drop.",
        _of(NIC, "retry_trims"),
    ),
    Choice(
        "A loss that a full queue explains: whose fault",
        DEVIATION,
        "No EV's: its plane was late or trimmed after the packet had left, or nothing at all was heard of several. It "
        "comes off the window. After eight in a row the path is to blame all the same, where the plane's other paths "
        "lose nothing; the more these lose, the more in a row chance explains. So a NIC need not know whether switches "
        "trim.",
        _of(NIC, "loss_spared"),
    ),
    Choice(
        "Losses that a full queue explains, or a dead path does",
        DEVIATION,
        "From the second loss in a row on the NIC asks the path by probes of the control class, which pass the queues "
        "of data, and with it another path. It is dead when three of its probes have no answer though others, that "
        "left no earlier, have. Losses alone tell that a hundred round trips later, as the window is down to a packet.",
        _of(NIC, "doubt_probes"),
    ),
    Choice(
        "How late a plane is whose full queue explains a loss",
        OPTION,
        "By the target of NSCC, and by eight full packets at its rate: less may be chance.",
        _of(NIC, "crowded_packets"),
    ),
    Choice(
        "A packet that is lost without a trim: off the window, or not",
        DEVIATION,
        "Not where switches trim: a full queue says so itself there, and what is simply gone tells of a broken path, "
        "which the state of its EV answers, unless a full queue explains it on a plane that has never trimmed. Taken "
        "off the window, as published, the packets of a plane that dies make the other planes idle. It is off the "
        "window where switches do not trim, where its port went down, and where the path policy leaves no path.",
        _of(NIC, "loss_is_congestion"),
    ),
    Choice(
        "Base RTT: configured, or measured",
        OPTION,
        "Begins with the topology's and follows lower samples of full packets, per destination, down to a quarter; "
        "target and increases stay those of the network.",
        _of(NIC, "base_rtt_near_ns", "base_rtt_measured"),
    ),
    Choice(
        "What is in flight: by the receiver's count, or by PSNs",
        DEVIATION,
        "By PSNs: SACKs name them, and the table is exact to the byte. `rcvd_bytes` (256 B units, with headers) is "
        "summed up and shown in `qp_table`, as is `ooo_count`.",
    ),
    Choice(
        "The A bit: when the window is nearly full",
        UNKNOWN,
        "Where the next packet does not fit, but twice per window (or per SACK threshold) at most; and at the end of "
        "what is to be sent.",
    ),
    Choice(
        "When a receiver penalises, and when it says restore_cwnd",
        UNKNOWN,
        "Never, unless told to; by the number of senders, or by what a QP holds out of order. restore_cwnd brings back "
        "the window of before the last penalty.",
        _of(NIC, "receiver_penalty", "penalty_senders", "penalty_ooo_packets"),
    ),
    Choice(
        "RED and trim thresholds",
        UNKNOWN,
        "UEC's advice, in shares of one plane's bandwidth-delay product.",
        _of(
            SWITCH,
            "ecn",
            "ecn_min",
            "ecn_max",
            "ecn_max_ppm",
            "trim",
            "trim_last_hop",
            "data",
            "data_last_hop",
            "control",
        ),
    ),
    Choice(
        "Latency of NICs, hosts and switches beside that of links",
        UNKNOWN,
        "None unless a topology says so: its link delay has the receiving switch's. With latencies of their own "
        "(`mrcfabric/latency.py`) nodes add to the delay of their links, so that base RTT and all that follows from it "
        "reckon with them; hosts add to posts and completions. All are pipelined. Published figures "
        "are one word, `latency: published`, and no default: they exist for one switch and one NIC, and of the NIC "
        "only a sum is published. 2-byte writes take 1.32 times as long across T1s with them, where 1.28 is published.",
        _of(NIC, "host_post_ns", "host_complete_ns"),
    ),
    Choice("Marks on the last hop", OPTION, "Off, as the paper has it.", _of(SWITCH, "ecn_last_hop")),
    Choice(
        "Share of the class of trimmed packets",
        DEVIATION,
        "One class for acknowledgements and trimmed packets, first up to its share of the link while data waits; the "
        "share is UEC's upper bound for trimmed packets alone, and part of the queue is kept for the rest. A NIC's own "
        "ports keep strict priority.",
        _of(SWITCH, "control", "control_reserve", "control_share", "control_burst_bytes"),
    ),
    Choice(
        "Hop limit where the same uSID stands several times in a row",
        CONFLICT,
        "Once per switch, as Linux; or once per shift, as RFC 9800.",
        _of(SWITCH, "hop_limit_per_shift"),
    ),
    Choice(
        "A packet whose active uSID is not this switch's",
        OPTION,
        "Routed like any address, unchanged, as RFC 8754 has it and Linux does: to the neighbour that it names. To no "
        "neighbour, or with the setting off, it is the drop not_own_usid.",
        _of(SWITCH, "route_foreign"),
    ),
    Choice(
        "What is left of a trimmed packet, and under which code point",
        UNKNOWN,
        "256 bytes from the outer header on: 128, counted from the frame, would lose the RETH. The code point is the "
        "egress port's and can be set live.",
        _of(SWITCH, "trim_bytes"),
    ),
    Choice(
        "Adjacency uSIDs (End.X)",
        OPTION,
        "Known only after the switch's own uSID; off, as the paper relies on uN alone.",
        _of(SWITCH, "adjacency"),
    ),
    Choice(
        "A segment routing header at a switch",
        OPTION,
        "Its next segment becomes the address when the container is used up; nobody removes the header.",
    ),
    Choice("Initial hop limit", OPTION, "The usual one, in both headers.", _of(WIRE, "hop_limit")),
)
