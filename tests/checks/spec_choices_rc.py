"""The rows of `spec_choices` that are about the RC transport and DCQCN: no MRC, but the same daemons."""

from tests.checks.choice import DEVIATION, NIC, NOT_DONE, OPTION, UNKNOWN, Choice
from tests.checks.choice import of as _of

RC = (
    Choice(
        "What runs on a NIC",
        OPTION,
        "MRC. The reliable connections of RoCEv2 (IBTA RC: WRITE, with and without immediate) run on the same daemons, "
        "with the same commands, completions and programs.",
        _of(NIC, "transport"),
    ),
    Choice(
        "What a lost packet of RC costs",
        OPTION,
        "It and everything behind it (go-back-N). Go-back-0 repeats the whole message, whose packets the receiver has "
        "forgotten; a time-out goes back only to what is not acknowledged. Selective is IRN.",
        _of(NIC, "rc_recovery"),
    ),
    Choice(
        "When an RC receiver asks again for a packet that is lost once more",
        UNKNOWN,
        "One NAK per gap and pass: a packet with the same or an earlier number than the last one shows that the sender "
        "has gone back. With one NAK until the gap closes such a loss costs a time-out; firmware that asks again by "
        "time has 500 us.",
        _of(NIC, "rc_nak_passes", "rc_nak_interval_ns"),
    ),
    Choice(
        "IRN: headers and loss",
        DEVIATION,
        "Every data packet has a RETH with its own address, every acknowledgement four bytes with the PSN of its "
        "cause: stock dissectors show both as payload. The sender judges loss by the order of transmissions on its one "
        "path, so that a packet lost twice costs no time-out, as it would in the paper. The QP ends after the time in "
        "which go-back-N would have ended it.",
        _of(NIC, "rc_rto_low_ns", "rc_rto_high_ns", "rc_rto_low_packets"),
    ),
    Choice(
        "How much an RC QP has in flight",
        UNKNOWN,
        "As many packets as `rc_psns_max`; with IRN a bandwidth-delay product of its port, what waits for its "
        "acknowledgement, and four packets; and no more packets than it has of 1,024 bytes, rounded up to a power of "
        "two, at least 128, for which both ends have records.",
        _of(NIC, "rc_window_bytes", "rc_psns_max"),
    ),
    Choice(
        "RC time-out and retries",
        OPTION,
        "4.096 us times 2 to the exponent, exactly (IBTA lets NICs take up to four times as long); it runs from the "
        "oldest packet in flight or the last progress. Only time-outs use up retries, not NAKs: go-back-0 may go on "
        "for ever without progress. A QP may have its own exponent and count.",
        _of(NIC, "rc_timeout", "rc_retry_cnt"),
    ),
    Choice(
        "When an RC receiver acknowledges without being asked",
        UNKNOWN,
        "After so many packets in order. The last packet of a message asks, and so does the last that a window allows.",
        _of(NIC, "rc_ack_every"),
    ),
    Choice(
        "Classes of RoCE packets",
        OPTION,
        "Data in class 3; acknowledgements and notifications in class 6, which is not paused.",
        _of(NIC, "rc_data_dscp", "rc_ack_dscp", "np_cnp_dscp"),
    ),
    Choice(
        "The port and the path of an RC QP",
        UNKNOWN,
        "One port for life, unless it may change when carrier is lost; the UDP source port is drawn per QP. Switches "
        "hash plain packets, or follow the uSIDs of one path drawn per QP. Answers go back by the port that their "
        "cause came by.",
        _of(NIC, "rc_port", "rc_port_failover", "rc_path"),
    ),
    Choice(
        "DCQCN: whether, and by which figures",
        OPTION,
        "On. Profile 40g has the figures of its paper, 100g those of HPCC's artifact, whose timers, F and rule of the "
        "target are what ConnectX NICs ship with; each figure can be set alone. alpha moves at once with a "
        "notification and decays in whole periods after it; in HPCC's model both happen at the period's end. Steps of "
        "increase are one chain per QP, bytes are bytes on the wire; 100g counts none, as HPCC's model.",
        _of(
            NIC,
            "cc",
            "rp_profile",
            "rp_dce_tcp_g_shift",
            "rp_dce_tcp_rtt_ns",
            "rp_time_reset_ns",
            "rp_byte_reset",
            "rp_threshold",
            "rp_ai_rate_mbps",
            "rp_hai_rate_mbps",
            "rp_min_rate_mbps",
            "rp_rate_reduce_monitor_period_ns",
            "rp_clamp_tgt_rate",
            "np_min_time_between_cnps_ns",
        ),
    ),
    Choice(
        "READ, atomics, SEND, receive buffers (RNR), automatic path migration",
        NOT_DONE,
        "No document uses them. A QP whose peer says that it is not ready ends, because nobody here has reason to.",
    ),
)
