"""The key of a cluster, shared by a standing share service and by everybody who launches fabrics over it.

Owns its file and its two uses: it proves that a caller may have shares started, and it seals the secrets of launches,
since connections between hosts (`orchestrator.process.keyed_stream`) are not secret. The file is one line of
hexadecimal, as `openssl rand -hex 32` writes it.
"""

import hashlib
import os
from pathlib import Path
from typing import Final, Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from mrcfabric.control_message import Realm, new_secret, secret_of, write_secret
from mrcfabric.errors import ConfigError

KEY_BYTES_MIN: Final = 32
FILE_BYTES_MAX: Final = 1024
_NONCE_BYTES: Final = 12
_PERSON: Final = b"mrcfabric-launch"


class ClusterKey:
    """One key. `read` reads it from its file."""

    def __init__(self, secret: bytes) -> None:
        self.realm = Realm(secret)
        """For connections; it belongs to no fabric and no launch."""
        self._sealing = ChaCha20Poly1305(hashlib.blake2b(key=secret, digest_size=32, person=_PERSON).digest())

    @classmethod
    def read(cls, path: Path) -> Self:
        """The key of a file. Raises ConfigError when it is missing, too short, or open to other users."""
        try:
            with path.open("rb") as file:
                status = os.fstat(file.fileno())
                text = file.read(FILE_BYTES_MAX).decode("ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no text"
            hint = f"make one with `mrcfabric share --new-key {path}`, the same file for all"
            raise ConfigError(f"key {path}", f"cannot be read: {why}", hint) from None
        # systemd and Kubernetes give a program that is not root a file that root owns and a group may read.
        if status.st_mode & (0o037 if status.st_uid == 0 else 0o077):
            raise ConfigError(f"key {path}", "can be read by other users", f"chmod 600 {path}")
        secret = secret_of(text, f"key {path}")
        if len(secret) < KEY_BYTES_MIN:
            hint = f"{KEY_BYTES_MIN} at least, as of `openssl rand -hex {KEY_BYTES_MIN}`"
            raise ConfigError(f"key {path}", f"has {len(secret)} bytes", hint)
        return cls(secret)

    def seal(self, text: bytes) -> bytes:
        """Encrypt a text so that nobody reads or changes it without the key."""
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._sealing.encrypt(nonce, text, None)

    def unseal(self, sealed: bytes) -> bytes:
        """Decrypt what `seal` made. Raises ValueError when it is not sealed, or not with this key."""
        try:
            return self._sealing.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], None)
        except (InvalidTag, ValueError):
            raise ValueError("it is not sealed with this key") from None


def write_new(path: Path) -> None:
    """Make a key. Raises ConfigError when the file exists already, or cannot be written."""
    try:
        write_secret(path, new_secret())
    except FileExistsError:
        hint = "whoever has it would be locked out; remove it first"
        raise ConfigError(f"--new-key {path}", "is there already", hint) from None
    except OSError as error:
        raise ConfigError(f"--new-key {path}", f"cannot be written: {error.strerror}") from None
