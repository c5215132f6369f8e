# SPDX-License-Identifier: BSD-3-Clause
"""What `imbrex doctor` reads from a node: processors, shared memory, limits, and networks.

Knows no launcher and no MPI. Each function that examines returns findings: tuples of state, value,
and what to do. All files are looked for below `root`, which is empty outside of tests; a file that
is absent sets no limit.
"""
import collections
import glob
import math
import os
import re

import resource

Finding = collections.namedtuple("Finding", "state value remedy")
OK, NOTE, WARN, FAIL = "ok", "note", "warn", "FAIL"
MIB = 1 << 20
SHARED_OF_RANK = 32 * MIB    # what MPIs take in /dev/shm is less
STACKS_ENOUGH = 10000        # tasks that wait at the same time
MAPPINGS_OF_STACK = 2        # the stack, and its guard
BYTES_OF_STACK = 2 * MIB     # of address space, by the default of IMBREX_STACK_SIZE
THREADS_ENOUGH = 32          # of a rank: workers, and threads of the MPI
DEVICES = (("InfiniBand or RoCE", "/sys/class/infiniband/*"), ("Omni-Path", "/dev/hfi1_*"),
           ("Slingshot", "/sys/class/cxi/*"), ("XPMEM", "/dev/xpmem"), ("KNEM", "/dev/knem"))


def found_ok(value):
    return Finding(OK, value, "")


class Machine:
    """Reads one node. *Invariant:* nothing is written."""

    def __init__(self, root=""):
        self.root = root

    def text(self, path):
        """Of a file; "" if it is absent or may not be read."""
        try:
            with open(self.root + path, encoding="utf-8", errors="replace") as file:
                return file.read().strip()
        except OSError:
            return ""

    def number(self, path):
        text = self.text(path)
        return int(text) if re.fullmatch("-?[0-9]+", text, re.ASCII) else None

    def names(self, pattern):
        return sorted(os.path.basename(path) for path in glob.glob(self.root + pattern))

    # ---- control groups ----

    def groups(self, controller):
        """Yields (version, folder) of the group of this process and of the groups around it, where
        the controller may set limits."""
        own = dict()
        for line in self.text("/proc/self/cgroup").splitlines():
            parts = line.split(":", 2)
            if len(parts) == 3:
                own.update((name, parts[2]) for name in parts[1].split(","))
        for line in self.text("/proc/self/mountinfo").splitlines():
            before, _, after = line.partition(" - ")
            before, after = before.split(), after.split()
            if len(before) < 5 or len(after) < 3:
                continue
            version = 2 if after[0] == "cgroup2" else 1
            name = "" if version == 2 else controller
            if name not in own or (version == 1 and (
                    after[0] != "cgroup" or controller not in after[2].split(","))):
                continue
            mount, top = unescaped(before[4]), unescaped(before[3]).rstrip("/")
            path = own[name]
            inside = (path + "/").startswith(top + "/") and "/.." not in path
            path = path[len(top):].rstrip("/") if inside else ""
            while path:
                yield version, mount + path
                path = path.rpartition("/")[0]
            yield version, mount

    def quota(self):
        """The processors whose time the control groups grant; None if there is no limit. The
        runtime reads the same files (src/base/threads/quota.cpp)."""
        quotas = []
        for version, folder in self.groups("cpu"):
            if version == 2:
                words = self.text(folder + "/cpu.max").split()
            else:
                words = [self.text(f"{folder}/cpu.cfs_{name}_us") for name in ("quota", "period")]
            if len(words) == 2 and all(re.fullmatch("[0-9]+", word, re.ASCII) for word in words):
                quota, period = map(int, words)
                if quota > 0 and period > 0:
                    quotas.append(quota / period)
        return min(quotas, default=None)

    def processes_max(self):
        """The least pids.max of the control groups; None if there is no limit."""
        limits = [self.number(folder + "/pids.max") for _, folder in self.groups("pids")]
        return min((limit for limit in limits if limit is not None), default=None)

    # ---- what is examined ----

    def processors(self, allowed, workers):
        """`workers`: of a process here, as the runtime has counted them; None if unknown."""
        present = os.cpu_count() or len(allowed)
        quota = self.quota()
        usable = len(allowed) if quota is None else min(len(allowed), max(1, math.ceil(quota)))
        value = (f"{len(allowed)} of {present} may be used, " +
                 ("no CPU quota" if quota is None else f"CPU quota {quota:g}"))
        value += "" if workers is None else f"; one process starts {plural(workers, 'worker')}"
        if workers is not None and workers > usable:
            return [Finding(WARN, value, f"set IMBREX_WORKERS to {usable} at most, or leave it "
                                         "out: workers share processors")]
        if workers is not None and workers < usable:
            return [Finding(NOTE, value, "fewer workers than processors: right if IMBREX_WORKERS "
                                         "asks for that")]
        if usable < len(allowed):
            return [Finding(NOTE, value, "the quota of the container or job bounds the workers; "
                                         "raise it for more (docker --cpus, CPUQuota=)")]
        return [found_ok(value)]

    def load(self, allowed):
        words = self.text("/proc/loadavg").split()
        try:
            load = float(words[0])
        except (IndexError, ValueError):
            return [Finding(NOTE, "there is no /proc/loadavg", "look by top or uptime whether "
                            "other programs run")]
        value = f"{load:g} threads want to run, on {plural(len(allowed), 'processor')}"
        if load > len(allowed) + 0.5:
            return [Finding(WARN, value, "other programs run here: times will vary, and idle "
                            "workers that poll are slow; IMBREX_BIND=0 and IMBREX_SPIN_US=0 help")]
        return [found_ok(value)]

    def shared_memory(self, ranks):
        """`ranks`: of this node."""
        folder = self.root + "/dev/shm"
        if not os.path.isdir(folder):
            return [Finding(FAIL, "there is no /dev/shm", "mount a tmpfs there: MPIs exchange the "
                            "messages of one node in it")]
        if not os.access(folder, os.W_OK):
            return [Finding(FAIL, "/dev/shm is not writable", "chmod 1777 /dev/shm, or mount it "
                            "writable")]
        there = os.statvfs(folder)
        size, free = there.f_blocks * there.f_frsize, there.f_bavail * there.f_frsize
        value = f"/dev/shm has {size // MIB} MiB, {free // MIB} MiB free"
        if free < ranks * SHARED_OF_RANK:
            return [Finding(WARN, value, f"{plural(ranks, 'rank')} of a node may need "
                            f"{ranks * SHARED_OF_RANK // MIB} MiB: docker --shm-size, or mount -o "
                            "remount,size=")]
        return [found_ok(value)]

    def stacks(self):
        limit = soft(resource.RLIMIT_STACK)
        value = f"ulimit -s is {in_kib(limit)}"
        if limit is not None and limit < MIB:
            return [Finding(WARN, value, "main and the tasks of OpenMP programs have small stacks: "
                            "ulimit -s 8192, or OMP_STACKSIZE for the tasks")]
        return [found_ok(value)]

    def address_space(self):
        limit = soft(resource.RLIMIT_AS)
        value = f"ulimit -v is {in_kib(limit)}"
        if limit is not None and limit // BYTES_OF_STACK < STACKS_ENOUGH:
            return [Finding(WARN, f"{value}: room for {limit // BYTES_OF_STACK} waiting tasks",
                            "ulimit -v unlimited, or a smaller IMBREX_STACK_SIZE")]
        return [found_ok(value)]

    def mappings(self):
        limit = self.number("/proc/sys/vm/max_map_count")
        if limit is None:
            return [Finding(NOTE, "there is no vm.max_map_count to be read", "a program that ends "
                            "with no memory for another stack may need a larger one")]
        stacks = limit // MAPPINGS_OF_STACK
        value = f"vm.max_map_count is {limit}, for about {stacks} waiting tasks"
        if stacks < STACKS_ENOUGH:
            return [Finding(WARN, value, "sysctl vm.max_map_count=1048576 (needs root)")]
        return [found_ok(value)]

    def threads(self, ranks):
        """`ranks`: of this node."""
        limits = {"ulimit -u": None if os.geteuid() == 0 else soft(resource.RLIMIT_NPROC),
                  "pids.max of the control group": self.processes_max(),
                  "kernel.threads-max": self.number("/proc/sys/kernel/threads-max")}
        known = {name: limit for name, limit in limits.items() if limit is not None}
        if not known:
            return [found_ok("no limit was found")]
        name = min(known, key=known.get)
        value = f"{known[name]} ({name} is the least limit)"
        if known[name] < ranks * THREADS_ENOUGH:
            return [Finding(WARN, value, f"{plural(ranks, 'rank')} of a node may need "
                            f"{ranks * THREADS_ENOUGH}: raise {name}, or set IMBREX_WORKERS")]
        return [found_ok(value)]

    def ptrace(self):
        findings = []
        scope = self.number("/proc/sys/kernel/yama/ptrace_scope")
        root = os.geteuid() == 0
        value = "no restriction by yama" if scope is None else f"yama/ptrace_scope is {scope}"
        if scope == 3 or (scope == 2 and not root):
            findings.append(Finding(NOTE, value, "gdb cannot attach to a rank, and MPIs copy long "
                                    "messages twice: sysctl kernel.yama.ptrace_scope=1 (needs "
                                    "root)"))
        elif scope == 1 and not root:
            findings.append(Finding(NOTE, value, "gdb -p needs root or "
                                    "kernel.yama.ptrace_scope=0; reports of imbrex do not need it"))
        else:
            findings.append(found_ok(value))
        if not os.access(self.root + "/proc/self/syscall", os.R_OK):
            findings.append(Finding(NOTE, "/proc/self/syscall cannot be read", "IMBREX_STALL=abort "
                                    "does not end a rank with a thread that sleeps in a lock: it "
                                    "cannot see for how long"))
        return findings

    def core_files(self):
        pattern, limit = self.text("/proc/sys/kernel/core_pattern"), soft(resource.RLIMIT_CORE)
        value = (f"ulimit -c is {in_kib(limit)}, core_pattern is "
                 f"{pattern.split(' ')[0] or 'not to be read'}")
        if pattern.startswith("|"):
            return [Finding(NOTE, value, "a program takes the core files: ask it for them "
                            "(coredumpctl), to see tasks in gdb")]
        if limit == 0:
            return [Finding(NOTE, value, "ulimit -c unlimited keeps a core file of a rank that "
                            "dies, to see its tasks in gdb")]
        return [found_ok(value)]

    def network(self):
        up = [name for name in self.names("/sys/class/net/*")
              if self.text(f"/sys/class/net/{name}/operstate") != "down" and name != "lo"]
        found = [f"{kind} {', '.join(names)}" for kind, pattern in DEVICES
                 if (names := self.names(pattern))]
        value = "; ".join(["interfaces " + (", ".join(up) or "none but lo"), *found])
        locked = soft(resource.RLIMIT_MEMLOCK)
        if self.names("/sys/class/infiniband/*") and locked is not None and locked < 64 * MIB:
            return [Finding(WARN, f"{value}; ulimit -l is {in_kib(locked)}", "ulimit -l unlimited: "
                            "the network needs locked memory")]
        return [found_ok(value)]


def unescaped(text):
    """A path of mountinfo has a space as \\040."""
    return re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), text)


def soft(which):
    """A limit of this process; None if there is none."""
    limit = resource.getrlimit(which)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def in_kib(limit):
    return "unlimited" if limit is None else f"{limit // 1024} KiB"


def plural(count, noun):
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
