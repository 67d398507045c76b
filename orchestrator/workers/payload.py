"""What is in the messages of a stream, and how it is checked: seeded bytes, or a file that the orchestrator has.

Owns the making and checking of payload; when which message travels is `stream`'s. A sink says how many bytes are
wrong; seeded payload depends on (source, target, round, number), so that a byte of any other message shows.
"""

import hashlib
import struct
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from mrcfabric.rng import seed_of
from orchestrator.workers.channel import WorkerChannel

Bytes = npt.NDArray[np.uint8]

HEAD = struct.Struct("<IIII")
"""Source, target, round, number: stands at the head of every seeded message that has room for it."""
SPAN = 1 << 16
"""Starts within the noise that a seed can choose from."""
PART_BYTES = 1 << 17
"""Of a file, in one message between a worker and the orchestrator."""
SEEDED: Final = "seeded"
CHECKED: Final = "checked"
HASHED: Final = "hashed"
CARRIED: Final = "carried"
"""Where a stream comes from (`seeded`, `carried`: from the orchestrator), and what becomes of it at the other end:
`checked` against the same seed, `hashed`, or `carried` to the orchestrator as well."""


class Source(Protocol):
    """Where messages come from."""

    def fill(self, number: int, slot: memoryview) -> int:
        """Put message `number` into `slot`; returns its length. Called once per message, in order."""
        ...

    def digest(self) -> str:
        """SHA-256 of everything so far, where that means something, or ""."""
        ...


class Sink(Protocol):
    """Where messages end."""

    def take(self, number: int, message: memoryview) -> int:
        """Look at a message; returns how many of its bytes are wrong. Called once per message, in order."""
        ...

    def digest(self) -> str:
        """SHA-256 of everything so far, where that means something, or ""."""
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

    def _start(self, number: int) -> int:
        return seed_of(*self._key, number) % SPAN

    def _head(self, number: int) -> bytes:
        return HEAD.pack(*self._key, number)[: self._size]


class CarriedSource:
    """What the orchestrator hands out part by part, cut into messages; each is asked for one message ahead.

    worker -> orchestrator   want {bytes}
    orchestrator -> worker   part {data, more}: until so many bytes are there, or there are no more
    """

    def __init__(self, channel: WorkerChannel, size: int, messages: int) -> None:
        self._channel = channel
        self._size = size
        self._messages = messages
        self._hash = hashlib.sha256()
        self._want()

    def _want(self) -> None:
        self._channel.send("want", bytes=self._size)

    def fill(self, number: int, slot: memoryview) -> int:
        length, more = 0, True
        while more:
            part = self._channel.receive()
            assert part is not None
            data, more = part["data"], part["more"]
            slot[length : length + len(data)] = data
            length += len(data)
        if number + 1 < self._messages:
            self._want()
        self._hash.update(slot[:length])
        return length

    def digest(self) -> str:
        return self._hash.hexdigest()


class HashedSink:
    """Hashes what comes; nothing is known to be wrong before the hashes meet."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def take(self, number: int, message: memoryview) -> int:
        self._hash.update(message)
        return 0

    def digest(self) -> str:
        return self._hash.hexdigest()


class CarriedSink(HashedSink):
    """The same, and tells the orchestrator what comes: `part {data}`, as often as it takes."""

    def __init__(self, channel: WorkerChannel) -> None:
        super().__init__()
        self._channel = channel

    def take(self, number: int, message: memoryview) -> int:
        for start in range(0, len(message), PART_BYTES):
            self._channel.send("part", data=bytes(message[start : start + PART_BYTES]))
        return super().take(number, message)
