"""`confined.py LEFT COMMAND...`: run a command with no more than these system calls and families of addresses.

LEFT is JSON: `{"calls": names, "families": as AF_INET}`. Whatever else it tries is not permitted, as systemd has it;
nor is memory that was written ever executed.
"""

import ctypes
import errno
import json
import os
import socket
import sys
from typing import Final

_ALLOW: Final = 0x7FFF0000
_ERRNO: Final = 0x00050000
_EQUAL: Final = 4
_UNKNOWN: Final = -1
_PR_SET_MDWE, _REFUSE_EXEC_GAIN = 65, 1


class _Comparison(ctypes.Structure):
    _fields_ = [
        ("argument", ctypes.c_uint),
        ("relation", ctypes.c_int),
        ("value", ctypes.c_uint64),
        ("unused", ctypes.c_uint64),
    ]


def confine(calls: list[str], families: list[str]) -> None:
    """From now on, for this process and all that stem from it."""
    seccomp = ctypes.CDLL("libseccomp.so.2")
    seccomp.seccomp_init.restype = ctypes.c_void_p
    rules = ctypes.c_void_p(seccomp.seccomp_init(_ERRNO | errno.EPERM))
    for call in calls:
        number = seccomp.seccomp_syscall_resolve_name(call.encode())
        if number == _UNKNOWN:  # of another architecture
            continue
        if call == "socket":
            for family in families:
                only = _Comparison(0, _EQUAL, int(getattr(socket, family)), 0)
                assert not seccomp.seccomp_rule_add_array(rules, _ALLOW, number, 1, ctypes.byref(only))
        else:
            assert not seccomp.seccomp_rule_add_array(rules, _ALLOW, number, 0, None), call
    assert not seccomp.seccomp_load(rules)
    # Kernels before 6.3 cannot; systemd then filters the calls that map memory.
    ctypes.CDLL(None).prctl(_PR_SET_MDWE, _REFUSE_EXEC_GAIN, 0, 0, 0)


if __name__ == "__main__":
    left = json.loads(sys.argv[1])
    confine(left["calls"], left["families"])
    os.execv(sys.argv[2], sys.argv[2:])
