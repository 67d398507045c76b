"""The truth about bytes and completions where the transport is UET: as `swarm.messages`.

A target hands immediates over in the order of posting. A sender hears of a message when its response comes: messages
complete in any order, those with an immediate too.
"""

from swarm.messages import Messages


class UetMessages(Messages):
    """All directions of a case whose NICs run UET."""

    immediates_in_turn = False
