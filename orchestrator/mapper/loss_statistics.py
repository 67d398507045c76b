"""When lost probes are evidence: how likely the losses of a link are, what a criterion finds, and how soon.

Owns the arithmetic of one link that `probes` probes crossed, `lost` of which did not come home.
`orchestrator.mapper.link_inference` knows which probe crosses which links, and finds the link to blame.

A healthy link loses at most the *tolerated* share of round trips. A link is called lossy when it lost so many that,
under the hypothesis that it is healthy, the likelihood ratio reaches 1 / *false alarm*:

    probes * KL(lost / probes || tolerated) >= ln(1 / false_alarm)

By Chernoff's bound the left side exceeds x for a healthy link with probability at most exp(-x), for every number of
probes. So `false_alarm` bounds the chance that one link is wrongly called lossy at one look. A map of L links that is
made T times is wrong somewhere with a chance of at most L * T * false_alarm. A link that loses a share `loss` of the
packets in each direction loses 1 - (1 - loss)**2 of the round trips, and is found after about
ln(1 / false_alarm) / KL(that || tolerated) probes: with the defaults 28 at 5 %, 160 at 1 %, 2,200 at 0.1 %. The time to
find it is that number over the rate at which probes cross the link.
"""

import math

TOLERATED = 1e-5
"""The share of round trips that a healthy link may lose."""
FALSE_ALARM = 1e-9
"""The chance that one link is wrongly called lossy at one look."""
POWER = 0.99
"""With which probability a loss should be found, by default."""
PROBES_MAX = 10_000_000


def round_trip(loss: float) -> float:
    """The share of round trips lost on a link that loses `loss` of the packets in each direction."""
    return 1 - (1 - loss) ** 2


def one_way(lost_share: float) -> float:
    """The loss per direction that explains a share of lost round trips, if both directions are alike."""
    return 1 - math.sqrt(1 - min(1.0, max(0.0, lost_share)))


def divergence(share: float, other: float) -> float:
    """KL(share || other) of two coins, in nats; 0 <= share <= 1, 0 < other < 1."""
    up = share * math.log(share / other) if share > 0 else 0.0
    down = (1 - share) * math.log((1 - share) / (1 - other)) if share < 1 else 0.0
    return up + down


def evidence(probes: int, lost: int, tolerated: float = TOLERATED) -> float:
    """The log-likelihood ratio against a healthy link, in nats; 0 when the link lost no more than is tolerated."""
    if not probes or lost <= tolerated * probes:
        return 0.0
    return probes * divergence(lost / probes, tolerated)


def needed(false_alarm: float = FALSE_ALARM) -> float:
    """The evidence, in nats, at which a link is called lossy."""
    return math.log(1 / false_alarm)


def losses_needed(probes: int, tolerated: float = TOLERATED, false_alarm: float = FALSE_ALARM) -> int:
    """The least number of losses among `probes` with which a link is called lossy; more than `probes` when none is."""
    wanted = needed(false_alarm)
    low, high = 0, probes + 1
    while low + 1 < high:
        middle = (low + high) // 2
        if evidence(probes, middle, tolerated) >= wanted:
            high = middle
        else:
            low = middle
    return high


def chance_of_more(probes: int, lost: int, share: float) -> float:
    """The chance that at least `lost` of `probes` round trips are lost, if each is lost with probability `share`."""
    if lost <= 0:
        return 1.0
    if lost > probes or share <= 0:
        return 0.0
    if share >= 1:
        return 1.0
    fewer = 0.0
    term = probes * math.log1p(-share)
    odds = math.log(share) - math.log1p(-share)
    for count in range(lost):
        fewer += math.exp(term)
        term += math.log((probes - count) / (count + 1)) + odds
    if fewer < 0.5:
        return 1 - fewer
    return _tail(probes, lost, share)


def _tail(probes: int, lost: int, share: float) -> float:
    """`chance_of_more`, summed over the upper tail: precise where the chance is small."""
    log_term = (
        math.lgamma(probes + 1) - math.lgamma(lost + 1) - math.lgamma(probes - lost + 1)
        + lost * math.log(share) + (probes - lost) * math.log1p(-share)
    )  # fmt: skip
    total, term = 0.0, math.exp(log_term)
    for count in range(lost, probes + 1):
        total += term
        term *= (probes - count) / (count + 1) * share / (1 - share)
        if term < total * 1e-16:
            break
    return min(1.0, total)


def chance_found(loss: float, probes: int, tolerated: float = TOLERATED, false_alarm: float = FALSE_ALARM) -> float:
    """The chance that `probes` probes find a link that loses `loss` of the packets in each direction."""
    return chance_of_more(probes, losses_needed(probes, tolerated, false_alarm), round_trip(loss))


def probes_to_find(
    loss: float, power: float = POWER, tolerated: float = TOLERATED, false_alarm: float = FALSE_ALARM
) -> int:
    """About how many probes find a link with this loss per direction with probability `power`.

    At most PROBES_MAX: a loss close to the tolerated share can never be told from it.
    """
    probes = 1
    while chance_found(loss, probes, tolerated, false_alarm) < power:
        if probes >= PROBES_MAX:
            return PROBES_MAX
        probes *= 2
    low, high = probes // 2, probes
    while low + 1 < high:
        middle = (low + high) // 2
        if chance_found(loss, middle, tolerated, false_alarm) < power:
            low = middle
        else:
            high = middle
    return high


def loss_below(probes: int, doubt: float = 1 - POWER) -> float:
    """The loss per direction that `probes` without a loss rule out, at a chance of error of `doubt`; 1 without any."""
    return one_way(1 - doubt ** (1 / probes)) if probes else 1.0


def least_share(probes: int, lost: int, doubt: float = 1 - POWER) -> float:
    """The least share of lost round trips that agrees with `lost` of `probes`, with a chance of error of `doubt`."""
    if not probes or not lost:
        return 0.0
    seen = min(1 - 1e-12, lost / probes)
    low, high = 0.0, seen
    for _ in range(50):
        middle = (low + high) / 2
        if middle and probes * divergence(seen, middle) <= math.log(1 / doubt):
            high = middle
        else:
            low = middle
    return high


def clean_needed(lost_share: float, doubt: float = 1 - POWER) -> int:
    """How many probes in a row must come home before a link that lost this share of them counts as healthy."""
    if not 0 < lost_share < 1:
        return 1
    return math.ceil(math.log(doubt) / math.log1p(-lost_share))
