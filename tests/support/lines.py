"""What a call costs, counted in lines of Python: the same on every machine."""

import gc
import sys
from collections.abc import Callable
from typing import Any


def lines_of(call: Callable[[], Any]) -> int:
    """Lines of Python that a call goes through, the second time it is made."""
    count = 0

    def count_line(_frame: Any, event: str, _argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return count_line

    call()
    gc.collect()
    gc.disable()  # finalizers of what others left behind are none of the call's
    before = sys.gettrace()
    sys.settrace(count_line)
    try:
        call()
    finally:
        sys.settrace(before)
        gc.enable()
    return count
