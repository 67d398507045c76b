"""Words of memory that somebody looks at while another writes them: what two processes do to each other, in one."""

from collections.abc import Callable
from typing import Any


class Watched:
    """The words of a page, looked at by somebody else before and after each of them is written."""

    def __init__(self, words: memoryview, look: Callable[[], None]) -> None:
        self._words = words
        self._look = look

    def __getitem__(self, index: Any) -> Any:
        return self._words[index]

    def __setitem__(self, index: int, value: int) -> None:
        self._look()
        self._words[index] = value
        self._look()
