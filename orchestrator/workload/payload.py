"""What is in the messages of a stream, and how it is checked: seeded bytes, or a file.

Owns the making and checking of payload; when which message travels is `stream`'s. A sink says how many bytes are
wrong; seeded payload depends on (source, target, round, number), so that a byte of any other message shows.
"""

import hashlib
import os
import struct
from typing import Protocol

import numpy as np
import numpy.typing as npt

from mrcfabric.rng import seed_of

Bytes = npt.NDArray[np.uint8]

HEAD = struct.Struct("<IIII")
"""Source, target, round, number: stands at the head of every seeded message that has room for it."""
SPAN = 1 << 16
"""Starts within the noise that a seed can choose from."""


class Source(Protocol):
    """Where messages come from."""

    def fill(self, number: int, slot: memoryview) -> int:
        """Put message `number` into `slot`; returns its length. Called once per message, in order."""
        ...

    def digest(self) -> str:
        """SHA-256 of everything so far, where that means something, or ""."""
        ...

    def close(self) -> None:
        """The round is over."""
        ...


class Sink(Protocol):
    """Where messages end."""

    def take(self, number: int, message: memoryview) -> int:
        """Look at a message; returns how many of its bytes are wrong. Called once per message, in order."""
        ...

    def digest(self) -> str:
        """SHA-256 of everything so far, where that means something, or ""."""
        ...

    def close(self) -> None:
        """The round is over."""
        ...


class Noise:
    """Seeded bytes that every worker can make for itself."""

    def __init__(self, seed: str, length: int) -> None:
        generator = np.random.Generator(np.random.PCG64(seed_of(seed, "payload")))
        self._bytes: Bytes = generator.integers(0, 256, length + SPAN, dtype=np.uint8)

    def at(self, start: int, length: int) -> Bytes:
        """`length` bytes from `start` on."""
        return self._bytes[start : start + length]


class Seeded:
    """Source and sink of messages of one size from one worker to another in one round."""

    def __init__(self, noise: Noise, size: int, source: int, target: int, turn: int) -> None:
        self._noise = noise
        self._size = size
        self._key = (source, target, turn)

    def fill(self, number: int, slot: memoryview) -> int:
        out = np.frombuffer(slot, np.uint8)[: self._size]
        out[:] = self._noise.at(self._start(number), self._size)
        head = self._head(number)
        out[: len(head)] = np.frombuffer(head, np.uint8)
        return self._size

    def take(self, number: int, message: memoryview) -> int:
        if len(message) != self._size:
            return max(self._size, len(message))
        got = np.frombuffer(message, np.uint8)
        head = self._head(number)
        wrong = sum(a != b for a, b in zip(got[: len(head)].tobytes(), head, strict=True))
        rest = self._noise.at(self._start(number) + len(head), self._size - len(head))
        # Equality first: it is several times cheaper than counting, and nearly always true.
        body = got[len(head) :]
        return wrong if np.array_equal(body, rest) else wrong + int(np.count_nonzero(body != rest))

    def digest(self) -> str:
        return ""

    def close(self) -> None:
        pass

    def _start(self, number: int) -> int:
        return seed_of(*self._key, number) % SPAN

    def _head(self, number: int) -> bytes:
        return HEAD.pack(*self._key, number)[: self._size]


class FileSource:
    """A file, cut into messages."""

    def __init__(self, path: str) -> None:
        self._file = open(path, "rb", buffering=0)  # noqa: SIM115 - closed by close()
        self._hash = hashlib.sha256()

    def fill(self, number: int, slot: memoryview) -> int:
        length = 0
        while length < len(slot):
            count = self._file.readinto(slot[length:])
            if not count:
                break
            length += count
        self._hash.update(slot[:length])
        return length

    def digest(self) -> str:
        return self._hash.hexdigest()

    def close(self) -> None:
        self._file.close()


class FileSink:
    """Hashes what comes and, with a path, keeps it there; nothing is known to be wrong before the hashes meet."""

    def __init__(self, path: str | None) -> None:
        self._file = open(path or os.devnull, "wb")  # noqa: SIM115 - closed by close()
        self._hash = hashlib.sha256()

    def take(self, number: int, message: memoryview) -> int:
        self._hash.update(message)
        self._file.write(message)
        return 0

    def digest(self) -> str:
        self._file.flush()
        return self._hash.hexdigest()

    def close(self) -> None:
        self._file.close()
