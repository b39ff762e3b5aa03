"""Run a function in a fork whose system calls can be made to fail, or end it, one by one (Linux on x86-64)."""

import ctypes
import os
import platform
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass

AVAILABLE = sys.platform == "linux" and platform.machine() == "x86_64"

TRACE_ME, GET_REGISTERS, SET_REGISTERS, NEXT_CALL, SET_OPTIONS = 0, 12, 13, 24, 0x4200
MARK_CALLS, END_WITH_PARENT = 1, 1 << 20
RESULT, CALL = 10, 15
"""Places of rax and orig_rax among the registers."""
NO_CALL = 2**64 - 1

FILE_CALLS = {
    0: "read", 1: "write", 2: "open", 3: "close", 4: "stat", 5: "fstat", 6: "lstat", 8: "lseek", 16: "ioctl",
    17: "pread", 18: "pwrite", 20: "writev", 32: "dup", 72: "fcntl", 73: "flock", 74: "fsync", 75: "fdatasync",
    77: "ftruncate", 79: "getcwd", 82: "rename", 83: "mkdir", 86: "link", 87: "unlink", 89: "readlink", 217: "getdents",
    257: "openat", 258: "mkdirat", 262: "newfstatat", 263: "unlinkat", 264: "renameat", 265: "linkat",
    267: "readlinkat", 285: "fallocate", 292: "dup3", 316: "renameat2", 332: "statx",
}  # fmt: skip
"""Calls on files. Others, such as those for memory and signals, change nothing on a disk and are not counted."""


@dataclass(frozen=True)
class Traced:
    """How a fork ended, and its system calls on files."""

    code: int
    calls: list[str]


def run_traced(work: Callable[[], int], *, at: int = 0, error: int | None = None) -> Traced:
    """Call `work` in a fork and exit with its result; call number `at` on files fails with `error`, or kills it."""
    trace = ctypes.CDLL(None, use_errno=True).ptrace
    trace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
    trace.restype = ctypes.c_long
    child = os.fork()
    if child == 0:
        trace(TRACE_ME, 0, None, None)
        os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(work())
    os.waitpid(child, 0)
    trace(SET_OPTIONS, child, None, MARK_CALLS | END_WITH_PARENT)
    registers, calls, entering, failing = (ctypes.c_ulonglong * 27)(), list[str](), True, False
    delivered = 0
    while True:
        trace(NEXT_CALL, child, None, delivered)
        status = os.waitpid(child, 0)[1]
        if not os.WIFSTOPPED(status):
            return Traced(os.waitstatus_to_exitcode(status), calls)
        delivered = 0
        if os.WSTOPSIG(status) != signal.SIGTRAP | 0x80:
            delivered = os.WSTOPSIG(status)
            continue
        trace(GET_REGISTERS, child, None, ctypes.addressof(registers))
        if entering and registers[CALL] in FILE_CALLS:
            calls.append(FILE_CALLS[registers[CALL]])
            failing = len(calls) == at and error is not None
            if len(calls) == at and error is None:
                os.kill(child, signal.SIGKILL)
            elif failing:
                registers[CALL] = NO_CALL
                trace(SET_REGISTERS, child, None, ctypes.addressof(registers))
        elif failing and not entering:
            registers[RESULT] = 2**64 - (error or 0)
            trace(SET_REGISTERS, child, None, ctypes.addressof(registers))
            failing = False
        entering = not entering
