# SPDX-License-Identifier: BSD-3-Clause
"""What `imbrex simulate` accepts: the range of each number, and what fits into this machine."""
import math
import os
import re
import resource

from imbrex_errors import CommandError

COUNT, SIZE, TIME_US = 2 ** 20, 10 ** 12, 1e9
# The least and the most of each option that is a whole number.
WHOLE = {name: (1, COUNT) for name in ("tile", "chunks", "parts", "steps", "blocks", "side", "hot",
                                       "iterations", "victims", "rounds", "ranks", "per-node")}
WHOLE |= {name: (1, SIZE) for name in ("n", "size", "ghost", "bytes")}
WHOLE |= {name: (1, 2 ** 31 - 1) for name in ("rows", "columns", "outer-rows", "outer-columns",
                                              "inner-rows", "inner-columns")}
WHOLE |= {"workers": (1, 4096), "tasks-ahead": (0, 10 ** 9), "seed": (0, SIZE),
          "lookahead": (0, 2 ** 31 - 1)}
# --n of some programs has another meaning.
N_MOST = {"minife": 1024, "hpcg": 1024, "exchange": 2 ** 24}
# The range of each option that is any number, in the unit of its name.
NUMBERS = {name: (0, TIME_US) for name in ("creator-us", "task-us", "elsewhere-us", "combine-us")}
NUMBERS |= {"poll-gap-us": (1, TIME_US), "cell-ns": (0, 1e12), "speed": (1e-6, 1e6),
            "memory": (0.001, 1e9)}
# The range of each parameter of a network.
NETWORK = {name: (0, TIME_US) for name in ("latency_us", "overhead_us", "gap_us",
                                           "node_latency_us")}
NETWORK |= {name: (1e-5, 1e9) for name in ("gbit_per_s", "copy_gbit_per_s", "node_gbit_per_s")}
NETWORK |= {"eager_bytes": (0, SIZE), "sender_answers": (0, 1), "noise": (0, 100)}
WHOLE_PARAMETERS = ("eager_bytes", "sender_answers")
KERNEL_NS_MOST = 10 ** 15

# Memory that a simulation takes: measured, on x86-64 Linux.
RANK_BYTES = 600_000
LEARNING_RANK_BYTES = 1_000_000  # under a policy that learns which tasks lead to messages
LEARNING = ("ma1", "ma2", "ma3", "sa", "fa", "ga")
CARRIED_RANK_BYTES = 20_000      # `broadcast` and `pool`, which have no tasks
WORKER_BYTES = 2000
TASK_BYTES = 640                 # of a live task
TASKS_SAID = 1_000_000           # from so many tasks on the command says what it needs
TASKS_MOST = 10 ** 10            # hours
TASKS_PER_S = 300_000


def shown(number):
    return f"{number:,}" if isinstance(number, int) else f"{number:g}"


def range_of(least, most):
    return f"valid: {shown(least)} to {shown(most)}"


def within(value, least, most):
    """Whether a number is in this range; nan is not."""
    return least <= value <= most


def whole(text, name):
    """The value of --NAME. Throws ValueError, whose text says what is valid."""
    least, most = WHOLE[name]
    digits = re.fullmatch("[0-9]+", text, re.ASCII)
    if digits is None or len(text) > 40 or not within(int(text), least, most):
        raise ValueError(f"{brief(text)} is not a whole number: {range_of(least, most)}")
    return int(text)


def number(text, name):
    """As whole(), for a number that may have a fraction."""
    least, most = NUMBERS[name]
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not within(value, least, most):
        raise ValueError(f"{brief(text)} is out of range: {range_of(least, most)}")
    return value


def parameter(text, name):
    """The value of a parameter of a network, in the unit of its name."""
    least, most = NETWORK[name]
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{name}: not a number: {brief(text)}") from None
    if not within(value, least, most) or (name in WHOLE_PARAMETERS and value != int(value)):
        kind = "a whole number, " if name in WHOLE_PARAMETERS else ""
        raise ValueError(f"{name} = {brief(text)}: out of range: {kind}{range_of(least, most)}")
    return value


def brief(text):
    return repr(text) if not text.strip() else text if len(text) <= 40 else f"{text[:37]}..."


# ---- memory ------------------------------------------------------------------------------------

class Need:
    """What one simulation needs."""

    def __init__(self, tasks, live, fixed_bytes, reduce):
        self.tasks = tasks            # in all
        self.fixed_bytes = fixed_bytes
        self.bytes = fixed_bytes + live * TASK_BYTES  # at most
        self.reduce = reduce          # options, in words


def fixed_bytes(ranks, workers, policy, is_carried):
    """Memory of the ranks of a simulation and of their workers."""
    rank = CARRIED_RANK_BYTES if is_carried else (
        LEARNING_RANK_BYTES if policy in LEARNING else RANK_BYTES)
    return ranks * (rank + workers * WORKER_BYTES)


def available_bytes():
    """Memory that this process may still take: of the machine, of its control group, of its
    limits."""
    found = [limit for limit in (resource.getrlimit(resource.RLIMIT_AS)[0],
                                 resource.getrlimit(resource.RLIMIT_DATA)[0])
             if limit != resource.RLIM_INFINITY]
    for line in lines_of("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            found.append(1024 * int(line.split()[1]))
    for most, used in (("memory.max", "memory.current"),
                       ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes")):
        values = [lines_of(f"/sys/fs/cgroup/{name}")[:1] for name in (most, used)]
        if all(value and value[0].isdigit() for value in values):
            found.append(max(0, int(values[0][0]) - int(values[1][0])))
    return min(found, default=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))


def lines_of(path):
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read().splitlines()
    except OSError:
        return []


def gib(count):
    amount = count / 2 ** 30
    return f"{amount:,.1f}" if amount < 1e6 else f"{amount:.2g}"


def millions(count):
    return f"{count / 1e6:,.1f}" if count < 1e12 else f"{count / 1e6:.2g}"


def duration(tasks):
    """How long their simulation takes."""
    hours = tasks / TASKS_PER_S / 3600
    return (f"{shown(float(f'{hours:.2g}'))} hours" if hours >= 2 else
            f"{60 * hours:.0f} minutes")


def check(need, ranks, memory_gib):
    """Throws CommandError if the simulation does not fit. Returns what it needs in words, which are
    empty if that is little."""
    if need.tasks > TASKS_MOST:
        raise CommandError(f"this simulation has about {millions(need.tasks)} million tasks, which "
                           f"would take about {duration(need.tasks)} and at most "
                           f"{gib(need.bytes)} GiB of memory; at most {millions(TASKS_MOST)} "
                           f"million tasks can be simulated: reduce {need.reduce}")
    there = available_bytes() if memory_gib is None else memory_gib * 2 ** 30
    if need.bytes > there:
        parts = f"{gib(need.fixed_bytes)} GiB for {ranks:,} ranks"
        if need.bytes > need.fixed_bytes:
            parts += (f", and at most {gib(need.bytes - need.fixed_bytes)} GiB for "
                      f"{millions(need.tasks)} million tasks")
        what = "--memory allows" if memory_gib is not None else "this machine has"
        raise CommandError(f"this simulation may need {gib(need.bytes)} GiB of memory ({parts}), "
                           f"and {what} {gib(there)} GiB: reduce {need.reduce}, or set another "
                           "limit by --memory GIB")
    if need.tasks < TASKS_SAID and need.bytes < 2 ** 30:
        return ""
    text = f"about {need.tasks / 1e6:.1f} million tasks, at most {gib(need.bytes)} GiB of memory"
    return text + (f", up to {duration(need.tasks)}" if need.tasks > 60 * TASKS_PER_S else "")
