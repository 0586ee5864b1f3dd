#!/usr/bin/env python3
"""Runs a command, lists the system calls of one kind of its processes, and has one of them fail: `cutter.py SPEC COMMAND…`.

SPEC is JSON: `who` (see `Tracer.is_wanted`), `calls` (names of those that count), `fault` (see `Tracer.begins`) with its `call` and
`count`, `threads` (whether the fault may come in any thread, or in the main one alone), `list` (where the calls go, one JSON object
a line, the last one with `was_cut`) and `keep`, a folder for copies of files that are replaced or removed. The exit code is that of the command, 128 and the
signal's number where one killed it. It works by ptrace, on Linux since 5.3.
"""
import collections
import ctypes
import errno
import json
import os
import platform
import shutil
import signal
import stat
import sys

# How many registers there are, and which ones hold the third argument of a call and its result.
MACHINES = {"x86_64": (27, 12, 10), "aarch64": (34, 2, 0)}
# The numbers of system calls on each of them. The second one lacks those that it has in a newer form.
NUMBERS = {
    "write": (1, 64), "pwrite64": (18, 68), "writev": (20, 66), "ftruncate": (77, 46), "fsync": (74, 82), "fdatasync": (75, 83),
    "rename": (82, None), "renameat": (264, 38), "renameat2": (316, 276), "link": (86, None), "linkat": (265, 37),
    "symlink": (88, None), "symlinkat": (266, 36), "mkdir": (83, None), "mkdirat": (258, 34), "unlink": (87, None),
    "unlinkat": (263, 35), "openat": (257, 56), "clone": (56, 220), "clone3": (435, 435), "fork": (57, None),
    "vfork": (58, None), "execve": (59, 221), "sendmsg": (46, 211), "sendto": (44, 206), "recvmsg": (47, 212),
    "wait4": (61, 260), "kill": (62, 129), "setsid": (112, 157), "ppoll": (271, 73),
}
# Where a call has its paths: the numbers of its arguments, each with that of the folder it starts from.
PATHS = {
    "rename": [(None, 0), (None, 1)], "renameat": [(0, 1), (2, 3)], "renameat2": [(0, 1), (2, 3)], "link": [(None, 0), (None, 1)],
    "linkat": [(0, 1), (2, 3)], "symlink": [(None, 1)], "symlinkat": [(1, 2)], "mkdir": [(None, 0)], "mkdirat": [(0, 1)],
    "unlink": [(None, 0)], "unlinkat": [(0, 1)], "openat": [(0, 1)],
}
OF_FILES = {"write", "pwrite64", "writev", "ftruncate", "fsync", "fdatasync"}
AT_FDCWD = -100

CONT, DETACH, SYSCALL, SEIZE, INTERRUPT, LISTEN = 7, 17, 24, 0x4206, 0x4207, 0x4208
GETREGSET, SETREGSET, GET_SYSCALL_INFO = 0x4204, 0x4205, 0x420E
SYSGOOD, FORKS, VFORKS, CLONES, EXECS = 1, 2, 4, 8, 16
EVENT_EXEC, EVENT_STOP = 4, 128
ALL_CHILDREN = 0x40000000
ENTRY, EXIT = 1, 2
NT_PRSTATUS, NT_ARM_SYSTEM_CALL = 1, 0x404


class Info(ctypes.Structure):
    """What PTRACE_GET_SYSCALL_INFO says, at the entry of a call."""

    _fields_ = [("op", ctypes.c_uint8), ("arch", ctypes.c_uint32), ("ip", ctypes.c_uint64), ("sp", ctypes.c_uint64),
                ("number", ctypes.c_uint64), ("args", ctypes.c_uint64 * 6), ("rest", ctypes.c_uint64)]

    def result(self):
        """The result of a call, at its exit."""
        return ctypes.c_int64(self.number).value


class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def ptrace(request, pid, address=0, data=0):
    if libc.ptrace(request, pid, address, data) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


class Registers:
    """The registers of a stopped thread."""

    def __init__(self, thread):
        count, self.third, self.result = MACHINES[platform.machine()]
        self.thread, self.values = thread, (ctypes.c_uint64 * count)()
        self.vector = Vector(ctypes.addressof(self.values), ctypes.sizeof(self.values))
        ptrace(GETREGSET, thread, NT_PRSTATUS, ctypes.addressof(self.vector))

    def store(self, index, value):
        self.values[index] = value & (1 << 64) - 1
        ptrace(SETREGSET, self.thread, NT_PRSTATUS, ctypes.addressof(self.vector))

    def skip_call(self):
        if platform.machine() == "x86_64":
            self.store(15, -1)
        else:
            number = ctypes.c_int(-1)
            vector = Vector(ctypes.addressof(number), ctypes.sizeof(number))
            ptrace(SETREGSET, self.thread, NT_ARM_SYSTEM_CALL, ctypes.addressof(vector))


def string_at(thread, address):
    with open(f"/proc/{thread}/mem", "rb", buffering=0) as memory:
        memory.seek(address)
        text = b""
        while b"\0" not in text:
            # What is mapped goes to the end of a page at least.
            text += memory.read(4096 - memory.tell() % 4096)
    return os.fsdecode(text.split(b"\0", 1)[0])


def status_of(thread, field):
    with open(f"/proc/{thread}/status") as lines:
        return next(line.split()[1] for line in lines if line.startswith(field + ":"))


class Tracer:
    """Follows the processes of a command."""

    def __init__(self, spec, words):
        if platform.machine() not in MACHINES:
            sys.exit(f"the numbers of system calls on {platform.machine()} are not known, only those on {', '.join(MACHINES)}")
        column = list(MACHINES).index(platform.machine())
        self.names = {NUMBERS[name][column]: name for name in spec["calls"] if NUMBERS[name][column] is not None}
        self.spec, self.list = spec, open(spec["list"], "w")
        self.counts, self.open_calls, self.known = collections.Counter(), {}, {}
        self.is_cut, self.kept = False, 0
        begin, go = os.pipe()
        self.main = os.fork()
        if self.main == 0:
            # Python ignores these.
            for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(ignored, signal.SIG_DFL)
            os.read(begin, 1)
            os.execvp(words[0], words)
        followed = CLONES if spec["who"] == "loop" else CLONES | FORKS | VFORKS
        ptrace(SEIZE, self.main, 0, SYSGOOD | EXECS | followed)
        os.write(go, b"x")

    def run(self):
        """Follows until the command's own process has ended; answers its exit code."""
        while True:
            thread, status = os.waitpid(-1, ALL_CHILDREN)
            if os.WIFSTOPPED(status):
                self.known.setdefault(thread, None)
                try:
                    self.go_on(thread, status)
                except (ProcessLookupError, FileNotFoundError):
                    pass  # It was killed meanwhile.
                continue
            self.known.pop(thread, None)
            if thread == self.main:
                self.let_go()
                self.list.write(json.dumps({"was_cut": self.is_cut}) + "\n")
                self.list.close()
                return os.waitstatus_to_exitcode(status)

    def let_go(self):
        """Those that live on do so without us, and lose no signal by it."""
        for thread in list(self.known):
            try:
                ptrace(INTERRUPT, thread)
                _, status = os.waitpid(thread, ALL_CHILDREN)
                number = os.WSTOPSIG(status) if os.WIFSTOPPED(status) and status >> 16 == 0 else 0
                ptrace(DETACH, thread, 0, 0 if number & 0x80 else number)
            except (ProcessLookupError, ChildProcessError):
                pass

    def go_on(self, thread, status):
        number, event = os.WSTOPSIG(status), status >> 16
        pass_on = 0
        if number == signal.SIGTRAP | 0x80:
            self.at_call(thread)
        elif event == EVENT_EXEC:
            self.known[thread] = self.is_wanted(thread)
            if not self.known[thread] and self.spec["who"] == "supervisor" and thread != self.main:
                # Nor is anything that it starts.
                del self.known[thread]
                ptrace(DETACH, thread)
                return
        elif event == EVENT_STOP and number != signal.SIGTRAP:
            ptrace(LISTEN, thread)
            return
        elif event == 0:
            pass_on = number
        if self.known[thread] is None:
            # A thread, or a process before it executes something.
            self.known[thread] = self.spec["who"] == "loop" and int(status_of(thread, "Tgid")) == self.main
        ptrace(SYSCALL if self.known[thread] else CONT, thread, 0, pass_on)

    def is_wanted(self, process):
        """Whether a process is of the kind that is cut off, by its command line."""
        who = self.spec["who"]
        if who == "loop":
            return process == self.main
        with open(f"/proc/{process}/cmdline", "rb") as file:
            words = file.read().split(b"\0")[1:-1]
        return words[:1] == [b"__supervise"] and (b"--pane" in words) == (who == "wrapper")

    def at_call(self, thread):
        info = Info()
        ptrace(GET_SYSCALL_INFO, thread, ctypes.sizeof(info), ctypes.addressof(info))
        if info.op == ENTRY and info.number in self.names:
            # Those of supervisors come one after the other: they are counted together.
            counted = thread if self.spec["who"] == "loop" else 0
            name = self.names[info.number]
            self.counts[counted, name] += 1
            call = self.describe(thread, name, info.args) | {"count": self.counts[counted, name]}
            self.open_calls[thread] = call
            self.begins(thread, call, info.args)
        elif info.op == EXIT and thread in self.open_calls:
            self.ends(thread, self.open_calls.pop(thread), info.result())

    def begins(self, thread, call, args):
        """`kill`: SIGKILL instead of the call. `torn`: SIGKILL when half of its bytes are written. `eio`: an error of this call.
        `enospc`: no space from this call on, for those that need some."""
        fault, is_of_file = self.spec.get("fault"), call.get("paths", [""])[0].startswith("/")
        is_thread = self.spec["threads"] or thread == self.main or self.spec["who"] != "loop"
        is_here = is_thread and (call["call"], call["count"]) == (self.spec.get("call"), self.spec.get("count"))
        was_cut, self.is_cut = self.is_cut, self.is_cut or fault is not None and is_here
        if fault == "kill" and is_here:
            os.kill(int(status_of(thread, "Tgid")), signal.SIGKILL)
        elif fault == "torn" and is_here:
            registers = Registers(thread)
            registers.store(registers.third, args[2] // 2)
            call["torn"] = True
        elif fault == "eio" and is_here or fault == "enospc" and (is_here or was_cut and call["call"] in self.spec["needs_space"]):
            if is_of_file:
                Registers(thread).skip_call()
                call["error"] = {"eio": errno.EIO, "enospc": errno.ENOSPC}[fault]

    def ends(self, thread, call, result):
        if call.get("torn"):
            os.kill(int(status_of(thread, "Tgid")), signal.SIGKILL)
        if "error" in call:
            registers = Registers(thread)
            registers.store(registers.result, -call["error"])
        call["result"] = result
        self.list.write(json.dumps(call) + "\n")

    def describe(self, thread, name, args):
        """The call as it is listed, with the files it is about, as they are before it."""
        call = {"thread": thread, "call": name}
        try:
            if name in OF_FILES:
                path = f"/proc/{thread}/fd/{args[0]}"
                call["paths"] = [os.readlink(path)]
                found = os.stat(path)
                call["size"] = found.st_size if stat.S_ISREG(found.st_mode) else None
            elif name in PATHS:
                call["paths"] = [self.path(thread, args, *where) for where in PATHS[name]]
                call["flags"] = args[2] if name == "openat" else 0
                self.keep(call)
        except OSError:
            pass  # It will fail.
        return call

    def path(self, thread, args, folder, name):
        number = AT_FDCWD if folder is None else ctypes.c_int(args[folder] & 0xFFFFFFFF).value
        start = os.readlink(f"/proc/{thread}/cwd" if number == AT_FDCWD else f"/proc/{thread}/fd/{number}")
        return os.path.normpath(os.path.join(start, string_at(thread, args[name])))

    def keep(self, call):
        """Keeps a copy of the file that a rename or a removal takes away."""
        path = call["paths"][-1]
        call["is_there"] = os.path.lexists(path)
        if self.spec.get("keep") and call["call"].startswith(("rename", "unlink")) and os.path.isfile(path):
            self.kept += 1
            call["kept"] = os.path.join(self.spec["keep"], str(self.kept))
            shutil.copy2(path, call["kept"], follow_symlinks=False)


def main():
    spec, words = json.loads(sys.argv[1]), sys.argv[2:]
    code = Tracer(spec, words).run()
    sys.exit(128 - code if code < 0 else code)


if __name__ == "__main__":
    main()
