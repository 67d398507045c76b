"""What daemons answer, as JSON: the agent passes their answers on, including bytes.

Owns how bytes are written, which JSON lacks: `{"$base64": "..."}`. Both ends of `POST /call` use this module.
"""

import base64
import binascii
import json
from typing import Any, Final

_BYTES: Final = "$base64"


def dumps(answer: Any) -> str:
    """Write an answer of plain data and bytes as JSON."""
    return json.dumps(answer, default=_written)


def loads(text: str | bytes) -> Any:
    """Read what `dumps` wrote. Raises ValueError for anything else."""
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
