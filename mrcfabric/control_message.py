"""The messages of the control channel: layout, authentication, the fabric's secret.

One datagram is a 16-byte MAC, keyed with the secret and the daemon's name, and a msgpack map. A request is {v, fabric,
epoch, incarnation, id, op, args, page}, an answer {v, fabric, epoch, incarnation, id, status, page, pages, body}; `id`
is (client, sequence), `status` one of ok, refused, pending. The two ends are `mrcfabric.control` (client) and
`mrcfabric.control_server`.
"""

import hashlib
import hmac
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import msgpack

from mrcfabric.errors import ConfigError

PROTOCOL_VERSION = 1
MAC_BYTES = 16
SECRET_BYTES = 32
PAGE_BYTES = 32 * 1024
"""The largest body of one answer, and the largest request."""
PAGES_MAX = 2048
"""The longest answer is PAGES_MAX * PAGE_BYTES = 64 MiB; a longer one is refused."""
_PERSON = b"mrcfabric-ctl"
_PERSON_NODE = b"mrcfabric-node"

Address: TypeAlias = tuple[str, int]
RequestId: TypeAlias = tuple[int, int]
"""(client, sequence): the client's random number, and its count of requests."""


@dataclass(frozen=True, slots=True)
class Realm:
    """The parties of a message: one fabric, one launch of it, and its secret."""

    secret: bytes
    fabric: str = ""
    epoch: int = 0
    """Number of the fabric's launch: messages of an earlier launch are dropped."""

    def of(self, node: str) -> "Realm":
        """The realm of one daemon: a message recorded from one daemon is useless to another."""
        digest = hashlib.blake2b(node.encode(), key=self.secret, digest_size=SECRET_BYTES, person=_PERSON_NODE)
        return replace(self, secret=digest.digest())


def new_secret() -> bytes:
    """A fresh fabric secret."""
    return os.urandom(SECRET_BYTES)


def write_secret(path: Path, secret: bytes) -> None:
    """Write a secret as one line of hex, readable by its owner only. The file must not exist yet."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(secret.hex() + "\n")


def read_secret(path: Path) -> bytes:
    """Read what `write_secret` wrote. Raises ConfigError when it is missing, no hex, or open to other users."""
    try:
        if path.stat().st_mode & 0o077:
            raise ConfigError(str(path), "the secret can be read by other users", f"chmod 600 {path}")
        text = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(str(path), f"cannot read the secret: {error}") from None
    return secret_of(text, str(path))


def secret_of(text: str, where: str) -> bytes:
    """A secret from its hex text. Raises ConfigError."""
    try:
        secret = bytes.fromhex(text)
    except ValueError:
        raise ConfigError(where, "the secret is not hexadecimal") from None
    if not 16 <= len(secret) <= 64:
        raise ConfigError(where, f"the secret has {len(secret)} bytes", "16 to 64 are needed")
    return secret


def seal(message: Mapping[str, Any], secret: bytes) -> bytes:
    """A message as a datagram: MAC, then the packed message."""
    return sealed(msgpack.packb(message), secret)


def sealed(body: bytes, secret: bytes) -> bytes:
    """A packed message with its MAC in front."""
    return _mac(body, secret) + body


def unseal(datagram: bytes, secret: bytes) -> dict[str, Any] | str:
    """The message in a datagram, or why there is none: `short`, `bad_mac` or `garbage`."""
    if len(datagram) <= MAC_BYTES:
        return "short"
    body = datagram[MAC_BYTES:]
    if not hmac.compare_digest(datagram[:MAC_BYTES], _mac(body, secret)):
        return "bad_mac"
    try:
        message = msgpack.unpackb(body)
    except (ValueError, TypeError, OverflowError, msgpack.UnpackException):
        return "garbage"
    return message if isinstance(message, dict) else "garbage"


def _mac(body: bytes, secret: bytes) -> bytes:
    return hashlib.blake2b(body, key=secret, digest_size=MAC_BYTES, person=_PERSON).digest()


def ident_of(value: Any) -> RequestId | None:
    """The request id in a message, or None."""
    if isinstance(value, list) and len(value) == 2 and all(isinstance(part, int) for part in value):
        return value[0], value[1]
    return None


def request_of(message: dict[str, Any]) -> tuple[RequestId, str, dict[str, Any], int] | None:
    """(id, op, args, page) of a request; None for any other message."""
    ident, op, args, page = (
        ident_of(message.get("id")),
        message.get("op"),
        message.get("args"),
        message.get("page"),
    )
    if ident is None or not isinstance(op, str) or not isinstance(args, dict) or not isinstance(page, int):
        return None
    if page < 0 or not all(isinstance(key, str) for key in args):
        return None
    return ident, op, args, page
