"""The ops by which others set, read and dismiss the witness of one daemon, and its end when nobody reads it.

Owns the rule that a daemon has one witness at a time, and its name. `witness` writes the statements. The ops, with
their args:

    witness {id, choice}           from now on follow the packets of `choice` (`mrcfabric.choice`); answers {now_ns}
    witnessed {id, since, limit}   statements after number `since` (`Witness.after`), and {now_ns}
    dismiss {id}                   no more
"""

from collections.abc import Callable
from typing import Any, Final

from mrcfabric.choice import Choice
from mrcfabric.control_server import Op
from mrcfabric.errors import RefusedError
from mrcfabric.units import Instant
from mrcfabric.unread import UNREAD_S, Unread
from mrcfabric.wire.dscp import Dscp
from mrcfabric.wire.options import WireOptions
from mrcfabric.witness import STATEMENTS_MAX, Witness

STATEMENTS_PER_ANSWER: Final = 1024
ID_CHARACTERS_MAX: Final = 64


class WitnessStand:
    """Calls `call` with the witness that the core is to have from now on; None: no witness."""

    def __init__(
        self,
        dscp: Dscp,
        options: WireOptions,
        call: Callable[[Witness | None], None],
        now_ns: Callable[[], Instant],
        unread_s: float = UNREAD_S,
    ) -> None:
        self._dscp = dscp
        self._options = options
        self._call = call
        self._now_ns = now_ns
        self._unread = Unread(lambda _name: self._end(), unread_s)
        self._name = ""
        self._witness: Witness | None = None

    @property
    def ops(self) -> dict[str, Op]:
        """By name, for the control channel."""
        return {"witness": self._begin, "witnessed": self._told, "dismiss": self._dismiss}

    def close(self) -> None:
        """Stop waiting for readers."""
        self._unread.close()

    async def _begin(self, args: dict[str, Any]) -> dict[str, Any]:
        name = args.get("id")
        if not isinstance(name, str) or not 0 < len(name) <= ID_CHARACTERS_MAX:
            raise RefusedError(f"id: {name!r} will not do (wanted: a text of up to {ID_CHARACTERS_MAX} characters)")
        if self._witness is not None:
            raise RefusedError(f"packets are being followed already ({self._name}); one trace at a time")
        witness = Witness(Choice.from_settings(args.get("choice", {})), self._dscp, self._options)
        self._name, self._witness = name, witness
        self._call(witness)
        self._unread.read(name)
        return {"now_ns": self._now_ns()}

    async def _told(self, args: dict[str, Any]) -> dict[str, Any]:
        witness = self._find(args)
        since, limit = args.get("since", 0), args.get("limit", STATEMENTS_PER_ANSWER)
        for name, value, least in (("since", since, 0), ("limit", limit, 1)):
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise RefusedError(f"{name}: {value!r} will not do (wanted: a whole number from {least})")
        self._unread.read(self._name)
        return {"now_ns": self._now_ns(), **witness.after(since, min(limit, STATEMENTS_MAX))}

    async def _dismiss(self, args: dict[str, Any]) -> None:
        self._find(args)
        self._unread.forget(self._name)
        self._end()

    def _find(self, args: dict[str, Any]) -> Witness:
        if self._witness is None or args.get("id") != self._name:
            left = f"one that is not read for {self._unread.unread_s:g} s ends"
            raise RefusedError(f"no packets are followed as {args.get('id')!r}; {left}")
        return self._witness

    def _end(self) -> None:
        self._name, self._witness = "", None
        self._call(None)
