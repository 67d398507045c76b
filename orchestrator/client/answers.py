"""What daemons answer, as JSON: the agent's API carries their answers on, bytes included.

Owns how bytes are written where JSON has none: `{"$base64": "..."}`. Both ends of `POST /call` read and write this.
"""

import base64
import binascii
import json
from typing import Any, Final

_BYTES: Final = "$base64"


def dumps(answer: Any) -> str:
    """An answer of plain data and bytes as JSON."""
    return json.dumps(answer, default=_written)


def loads(text: str | bytes) -> Any:
    """The inverse of `dumps`. Raises ValueError for what is none."""
    return json.loads(text, object_hook=_read)


def _written(value: Any) -> dict[str, str]:
    assert isinstance(value, bytes), f"{type(value).__name__} in an answer"
    return {_BYTES: base64.b64encode(value).decode("ascii")}


def _read(table: dict[str, Any]) -> Any:
    if len(table) == 1 and isinstance(text := table.get(_BYTES), str):
        try:
            return base64.b64decode(text, validate=True)
        except binascii.Error as error:
            raise ValueError(f"{_BYTES}: {error}") from None
    return table
