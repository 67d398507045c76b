"""Makes and checks the messages of a stream: seeded bytes, or a file that the orchestrator has.

`stream` decides when each message travels. A sink counts the bytes that are wrong. Seeded payload depends on (source,
target, round, number), so a byte of any other message shows.
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
"""Source, target, round, number. Begins every seeded message that has room for it."""
SPAN = 1 << 16
"""How many different starts within the noise a seed can choose."""
PART_BYTES = 1 << 17
"""Bytes of a file in one message between a worker and the orchestrator."""
SEEDED: Final = "seeded"
CHECKED: Final = "checked"
HASHED: Final = "hashed"
CARRIED: Final = "carried"
"""Where a stream comes from: `seeded`, or `carried` from the orchestrator; and what its other end does with it.

It checks the stream against the same seed (`checked`), hashes it, or sends it on to the orchestrator (`carried`)."""


class Source(Protocol):
    """Where messages come from."""

    def fill(self, number: int, slot: memoryview) -> int:
        """Put message `number` into `slot`; returns its length. Called once per message, in order."""
        ...

    def digest(self) -> str:
        """SHA-256 of everything so far; "" for seeded payload."""
        ...


class Sink(Protocol):
    """Where messages end."""

    def take(self, number: int, message: memoryview) -> int:
        """Check a message and return how many of its bytes are wrong. Called once per message, in order."""
        ...

    def digest(self) -> str:
        """SHA-256 of everything so far; "" for seeded payload."""
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
        # Compare for equality first: it is several times cheaper than counting, and nearly always true.
        body = got[len(head) :]
        return wrong if np.array_equal(body, rest) else wrong + int(np.count_nonzero(body != rest))

    def digest(self) -> str:
        return ""

    def _start(self, number: int) -> int:
        return seed_of(*self._key, number) % SPAN

    def _head(self, number: int) -> bytes:
        return HEAD.pack(*self._key, number)[: self._size]


class CarriedSource:
    """Gets data from the orchestrator part by part, and cuts them into messages. It asks for each one message ahead.

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
    """Hashes what comes. Errors show only when the hashes of both ends are compared."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def take(self, number: int, message: memoryview) -> int:
        self._hash.update(message)
        return 0

    def digest(self) -> str:
        return self._hash.hexdigest()


class CarriedSink(HashedSink):
    """Hashes what comes, and sends it to the orchestrator in as many `part {data}` as it takes."""

    def __init__(self, channel: WorkerChannel) -> None:
        super().__init__()
        self._channel = channel

    def take(self, number: int, message: memoryview) -> int:
        for start in range(0, len(message), PART_BYTES):
            self._channel.send("part", data=bytes(message[start : start + PART_BYTES]))
        return super().take(number, message)
