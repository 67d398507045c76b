"""The sums of all UET NICs (`orchestrator.live.uet_view`) in words, for `mrcfabric status` and `top`. Pure."""

from collections.abc import Mapping


def uet_text(sums: Mapping[str, int]) -> str:
    """The sums of `uet_sums` in words: contexts, and how paths are chosen."""
    contexts = f"{sums['initiators']:,} contexts open, {sums['targets']:,} at their targets"
    now = [
        f"{sums[name]:,} {what}"
        for name, what in (
            ("resting", "sitting out turns"), ("kept", "kept for once more"), ("frozen", "frozen choices"),
            ("planes_left", "planes left"),
        )
        if sums[name]
    ]  # fmt: skip
    return f"{contexts}; {sums['drawn']:,} entropies choose paths" + (f": {', '.join(now)}" if now else "")
