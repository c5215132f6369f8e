# SPDX-License-Identifier: BSD-3-Clause
"""Reads the files of one traced run and refuses what is not whole.

The format is docs/design/trace-format.md. Knows nothing of what the events mean.
"""
import collections
import dataclasses
import enum
import json
import pathlib
import re
import struct

from imbrex_errors import CommandError

VERSION = 3
RECORD = struct.Struct("<QQIIQQQ")  # time, task, worker, kind, a, b, c
NO_WORKER = 0xFFFFFFFF
COUNTS_MAX = {"ranks": 1 << 20, "workers": 1 << 16}  # more than any run has


class TraceError(CommandError):
    """The trace cannot be shown; the text says which file, and what is wrong with it."""


class Kind(enum.IntEnum):
    TASK_BEGIN = 1
    TASK_END = 2
    TASK_SUSPEND = 3
    TASK_RESUME = 4
    IDLE_BEGIN = 5
    IDLE_END = 6
    MESSAGE_SENT = 7
    MESSAGE_RECEIVED = 8
    TASK_CREATE = 9
    TASK_ACCESS = 10
    TASK_PRIORITY = 11
    ACCESS_RELEASED = 12
    TASK_HOLD = 13
    COLLECTIVE_BEGIN = 14
    COLLECTIVE_END = 15
    MESSAGE_WAITED = 16
    DATUM_NAMED = 17
    COPY_SENT = 18
    COPY_ARRIVED = 19
    TASK_BOUND = 20
    FUTURE_SET = 21
    FUTURE_JOINS = 22
    FUTURE_AWAITED = 23
    RECEIVE_POSTED = 24
    COLLECTIVE_POSTED = 25
    REQUEST_AWAITED = 26
    REQUEST_ENDED = 27
    REQUEST_GIVEN = 28
    SCOPE_BEGIN = 29
    SCOPE_END = 30
    CHILDREN_AWAITED = 31
    TASK_ITERATION = 32


# Kinds whose field `a` is the position of a name.
NAMED = frozenset((Kind.TASK_BEGIN, Kind.TASK_SUSPEND, Kind.TASK_CREATE, Kind.COLLECTIVE_BEGIN,
                   Kind.COLLECTIVE_END, Kind.DATUM_NAMED, Kind.FUTURE_SET, Kind.COLLECTIVE_POSTED,
                   Kind.REQUEST_AWAITED))

# Kinds that make a task and say what it is.
CREATION = frozenset((Kind.TASK_CREATE, Kind.TASK_ACCESS, Kind.TASK_BOUND, Kind.TASK_ITERATION))


@dataclasses.dataclass
class Name:
    name: str
    where: str  # file:line, or empty


@dataclasses.dataclass
class Rank:
    rank: int
    ranks: int
    workers: int
    policy: str
    host: str
    start: int  # ns since 1970
    end: int
    names: list  # of Name
    count: int  # of records
    path: pathlib.Path  # of the records
    records: tuple = ()  # of (time, task, worker, kind, a, b, c), as in_order() has them
    cut: str = ""  # why the rank ended before its end; empty if it did not
    command: tuple = ()  # the program and its arguments; empty in older traces
    processors: tuple = ()  # that its workers could use; empty in older traces
    spare_workers: tuple = ()  # on processors of other ranks (IMBREX_LEND); as `processors`
    lost: int = 0  # records for which there was no room
    why_lost: str = ""
    unrecorded: tuple = ()  # of (what, count): operations that have no records

    @property
    def is_partial(self):
        return bool(self.cut) or self.lost != 0


def read_run(directory):
    """All ranks of the run that wrote `directory`, in order of rank."""
    ranks = read_heads(directory)
    for rank in ranks:
        rank.records = read_records(rank)
    return ranks


def read_heads(directory):
    """read_run() without the records."""
    ranks = [read_rank(path, rank) for rank, path in head_files(directory).items()]
    check_complete(directory, ranks)
    return ranks


def head_files(directory):
    """rank -> the path of its head, in order of rank."""
    folder = pathlib.Path(directory)
    if not folder.is_dir():
        raise TraceError(f"{directory}: no such directory")
    files = {}
    for path in folder.iterdir():
        match = re.fullmatch(r"rank-(\d+)\.json", path.name)
        if match:
            files[int(match.group(1))] = path
    if not files:
        raise TraceError(f"{directory}: holds no trace (no rank-*.json). A program run with "
                         f"IMBREX_TRACE={directory} writes it when its runtime stops")
    return {rank: files[rank] for rank in sorted(files)}


def describe_gaps(ranks):
    """Returns a sentence about the missing part of a run that ended early, or that found no room
    for its trace; empty if nothing is missing."""
    cut = collections.defaultdict(list)
    for rank in ranks:
        if rank.cut:
            cut[rank.cut].append(str(rank.rank))
    parts = [f"{plural(numbers)} ended by {why}" for why, numbers in cut.items()]
    parts += [f"rank {rank.rank} had no room for {rank.lost} of its "
              f"{rank.lost + rank.count} records ({rank.why_lost})"
              for rank in ranks if rank.lost]
    missing = missing_of(ranks)
    if missing:
        parts.append(f"there is no file of {plural(missing)}")
    return f"the trace is incomplete: {'; '.join(parts)}" if parts else ""


def describe_unrecorded(ranks):
    """Returns what the ranks did and the trace does not contain; empty if it contains everything.
    `ranks` are the lists of (what, count) of the ranks."""
    counts = collections.Counter()
    for unrecorded in ranks:
        for what, count in unrecorded:
            counts[what] += count
    return ", ".join(f"{count} {what}" for what, count in counts.most_common())


def plural(numbers):
    return f"rank{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}"


def missing_of(ranks):
    present = {rank.rank for rank in ranks}
    return [str(rank) for rank in range(ranks[0].ranks) if rank not in present]


def check_complete(directory, ranks):
    """Checks that the ranks belong to one run. If the trace of a rank is partial, other ranks may
    have written nothing."""
    sizes = sorted({rank.ranks for rank in ranks})
    if len(sizes) > 1:
        raise TraceError(f"{directory}: holds files of runs with {sizes[0]} and {sizes[-1]} "
                         "ranks: remove the old ones")
    present = {rank.rank for rank in ranks}
    missing = missing_of(ranks)
    if missing and not any(rank.is_partial for rank in ranks):
        raise TraceError(f"{directory}: of {sizes[0]} ranks, no file of rank "
                         f"{', '.join(missing)}: did every rank call MPI_Finalize?")
    beyond = sorted(rank for rank in present if rank >= sizes[0])
    if beyond:
        raise TraceError(f"{directory}: rank {beyond[0]} in a run of {sizes[0]} ranks")


def read_rank(path, number):
    """A rank without its records."""
    head = read_head(path)
    if head["rank"] != number:
        raise TraceError(f"{path}: the file says rank {head['rank']}, unlike its name")
    return Rank(rank=number, ranks=head["ranks"], workers=head["workers"], policy=head["policy"],
                host=head["host"], start=head["start_ns"], end=head["end_ns"],
                names=[Name(entry["name"], entry["where"]) for entry in head["names"]],
                count=head["events"], path=path.with_suffix(".events"), cut=head.get("cut", ""),
                command=tuple(head.get("command", ())),
                processors=tuple(head.get("processors", ())),
                spare_workers=tuple(head.get("spare_workers", ())), lost=head.get("lost", 0),
                why_lost=head.get("why_lost", ""),
                unrecorded=tuple((entry["what"], entry["count"])
                                 for entry in head.get("unrecorded", ())))


def read_head(path):
    try:
        # Names and arguments are the program's own, and may hold any byte.
        head = json.loads(path.read_text(encoding="utf-8", errors="replace"))
        json.dumps(head, ensure_ascii=False).encode("utf-8")  # no half of a surrogate pair
    except (json.JSONDecodeError, UnicodeError, RecursionError) as error:
        raise TraceError(f"{path}: truncated or no JSON ({error})") from None
    if not isinstance(head, dict):
        raise TraceError(f"{path}: not a JSON object")
    if head.get("version") != VERSION:
        raise TraceError(f"{path}: trace version {head.get('version', 'missing')}; this tool "
                         f"reads version {VERSION}: take the `imbrex` of the library that wrote "
                         "it, or trace the program again")
    kinds = {"rank": int, "ranks": int, "workers": int, "policy": str, "host": str,
             "start_ns": int, "end_ns": int, "names": list, "events": int}
    for key, kind in kinds.items():
        if type(head.get(key)) is not kind:
            raise TraceError(f"{path}: key \"{key}\" is missing or is no {kind.__name__}")
    for key, kind, none in (("cut", str, ""), ("lost", int, 0), ("why_lost", str, "")):
        if type(head.get(key, none)) is not kind:
            raise TraceError(f"{path}: key \"{key}\" is no {kind.__name__}")
    for key, kind in (("command", str), ("processors", int), ("spare_workers", int)):
        value = head.get(key, [])
        if type(value) is not list or any(type(one) is not kind for one in value):
            raise TraceError(f"{path}: key \"{key}\" is no list of {kind.__name__}")
    for key, most in COUNTS_MAX.items():
        if not 1 <= head[key] <= most:
            raise TraceError(f"{path}: {head[key]} {key}: a run has 1 to {most}")
    for position, entry in enumerate(head["names"]):
        if not (isinstance(entry, dict) and isinstance(entry.get("name"), str)
                and isinstance(entry.get("where"), str)):
            raise TraceError(f"{path}: names[{position}] is not {{\"name\", \"where\"}}")
    unrecorded = head.get("unrecorded", [])
    if type(unrecorded) is not list or any(
            type(entry) is not dict or type(entry.get("what")) is not str
            or type(entry.get("count")) is not int for entry in unrecorded):
        raise TraceError(f"{path}: key \"unrecorded\" is no list of {{\"what\", \"count\"}}")
    if head["end_ns"] < head["start_ns"]:
        raise TraceError(f"{path}: ends {head['start_ns'] - head['end_ns']} ns before it starts")
    return head


def read_records(rank):
    try:
        data = rank.path.read_bytes()
    except FileNotFoundError:
        raise TraceError(f"{rank.path}: missing, though its .json is there") from None
    if len(data) != rank.count * RECORD.size:
        state = "truncated" if len(data) < rank.count * RECORD.size else "too long"
        raise TraceError(f"{rank.path}: {state}: {len(data)} bytes, not the "
                         f"{rank.count * RECORD.size} of its {rank.count} records")
    records = list(RECORD.iter_unpack(data))
    kinds = frozenset(Kind)
    for position, (_, _, worker, kind, a, _, _) in enumerate(records):
        if kind not in kinds:
            raise TraceError(f"{rank.path}: record {position}: unknown kind {kind}")
        if worker >= rank.workers and worker != NO_WORKER:
            raise TraceError(f"{rank.path}: record {position}: worker {worker}, but the rank has "
                             f"{rank.workers}, numbered from 0")
        if kind in NAMED and a >= len(rank.names):
            raise TraceError(f"{rank.path}: record {position}: name {a}, but the file has "
                             f"{len(rank.names)}, numbered from 0")
    return in_order(records)


def in_order(records):
    """All records by time. Clocks of two processors may differ a little, so a worker's records wait
    where they name a task whose creation, with its accesses, comes later. Tasks that create each
    other show that the file is damaged: the rest has the order of time."""
    records.sort(key=lambda record: record[0])  # stable: a worker's own order stays
    missing = collections.Counter(record[1] for record in records if record[3] in CREATION)
    queues = collections.defaultdict(collections.deque)  # worker -> its records that wait
    waiting = collections.defaultdict(list)  # task -> workers whose next record names it
    result = []
    for record in records:
        queues[record[2]].append(record)
        workers = [record[2]] if len(queues[record[2]]) == 1 else []
        while workers:
            worker = workers.pop()
            queue = queues[worker]
            while queue:
                kind, task = queue[0][3], queue[0][1]
                creates = kind in CREATION
                named = queue[0][6] if kind == Kind.TASK_CREATE else 0 if creates else task
                if named and missing.get(named):
                    waiting[named].append(worker)
                    break
                result.append(queue.popleft())
                if creates:
                    missing[task] -= 1
                    if not missing[task]:
                        workers += waiting.pop(task, ())
    return result + sorted((record for queue in queues.values() for record in queue),
                           key=lambda record: record[0])


def position_of(rank, record):
    """Where the record stands in its file."""
    return list(RECORD.iter_unpack(rank.path.read_bytes())).index(record)
