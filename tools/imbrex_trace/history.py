# SPDX-License-Identifier: BSD-3-Clause
"""Replays the records of one rank: what each worker did when, and where each task went.

Used by all that show a trace; knows nothing of files or of how it is shown.
"""
import collections
import dataclasses
import enum
import sys

from imbrex_trace.reader import NO_WORKER, Kind, Name, TraceError

AWAITS_TASK = 1  # field c of TASK_SUSPEND: b is a task
AWAITS_FUTURE = 3  # b is a future
AFTER = 5  # the kind of an access: it follows a task or a future
WAS_SET = 1  # this bit of a future: it was set when the record was made
LOW_HALF = (1 << 32) - 1  # of field c: the communicator; above it: the number of a request
COLLECTIVE_BYTES_MAX = (1 << 40) - 1  # of field b; above it: the root
DATUM_MAX = (1 << 40) - 1
# Less memory for each record; RHEL 9 has Python 3.9, which does not know the option.
SLOTS = {"slots": True} if sys.version_info >= (3, 10) else {}


class State(enum.Enum):
    TASK = "in task"
    IDLE = "idle"
    OVERHEAD = "overhead"


@dataclasses.dataclass(**SLOTS)
class Piece:
    """A worker's time without gaps: the pieces of one worker do not overlap."""
    start: int
    end: int
    state: State
    task: int  # the innermost, also if idle in it; 0 for none
    name: int  # its name's position, if state is TASK


@dataclasses.dataclass(**SLOTS)
class Slice:
    """A task on a worker, from begin or resume to suspension or end; may nest in another's."""
    worker: int
    start: int
    end: int
    task: int
    part: int  # 1 for the first, one more after each suspension
    waits_for: int = -1  # name of what it waits for, if a suspension ended it
    waits_task: int = 0  # the task that it waits for, if it is one
    waits_future: object = None  # the Future that it waits for, if messages set it


@dataclasses.dataclass(**SLOTS)
class Message:
    time: int
    worker: int
    sent: bool
    peer: int
    tag: int
    bytes: int
    communicator: int
    task: int  # that sent or received it; 0 for none


@dataclasses.dataclass(**SLOTS)
class Future:
    """A future that requests set: of a request that the program has handed over, or of a part of a
    collective, or a joint of such futures."""
    arrivals: list = dataclasses.field(default_factory=list)  # of received Message, Collective
    parts: list = dataclasses.field(default_factory=list)  # of Future

    def all_arrivals(self):
        yield from self.arrivals
        for part in self.parts:
            yield from part.all_arrivals()


@dataclasses.dataclass(**SLOTS)
class Copy:
    """One end of the way of a copy of a datum with an owner."""
    time: int
    worker: int
    sent: bool  # else it has arrived
    datum: int  # its number, the same on all ranks
    root: int
    ticket: int
    peer: int  # of a message that was sent: the receiving rank
    bytes: int


@dataclasses.dataclass(**SLOTS)
class Collective:
    """A task's stay in a collective call, or a non-blocking collective, whose task is the one that
    has found it complete."""
    task: int
    name: int
    bytes: int
    communicator: int
    start: int
    end: int = -1  # -1: it is still in it at the end
    begun_by: int = 0  # of a non-blocking one: the task


@dataclasses.dataclass(**SLOTS)
class Task:
    name: int
    priority: int
    parent: int
    parts: int = 0
    root: bool = False  # the code of main, which no task spawned
    created: int = -1  # time; -1: before the trace, or never
    accesses: tuple = ()  # of (place, kind), as the trace has them
    futures: tuple = ()  # of Future, which it must follow


@dataclasses.dataclass
class History:
    rank: object  # reader.Rank
    start: int
    end: int
    pieces: dict  # worker -> list of Piece, in order of time
    slices: list  # of Slice, in order of their ends
    messages: list  # of Message, in order of time
    tasks: dict  # id -> Task; those that never began have no parts
    collectives: list  # of Collective, in order of their begins
    waits: list  # ns that long messages have waited for their turn
    copies: list  # of Copy, in order of time
    data: dict  # number of a datum -> its name
    whole: object = None  # a Whole, if `start`, `end` and `pieces` are of a part of the run


@dataclasses.dataclass
class Whole:
    """The whole history, before it was limited to a part of the run."""
    start: int
    end: int
    pieces: dict


def replay(rank):
    player = Player(rank)
    for record in rank.records:
        try:
            player.play(record)
        except Unfit:
            pass
    return player.finish()


def crop(histories, names, directory):
    """Limits all ranks to the time from the first start to the last end of tasks so named."""
    wanted = set(names)
    spans = []
    for history in histories:
        numbers = {i for i, name in enumerate(history.rank.names) if name.name in wanted}
        spans += [(piece.start, piece.end) for pieces in history.pieces.values()
                  for piece in pieces if piece.state is State.TASK and piece.name in numbers]
    if not spans:
        raise TraceError(f"{directory}: no task is named {' or '.join(sorted(wanted))}; "
                         f"{describe_names(histories)}")
    limit(histories, min(span[0] for span in spans), max(span[1] for span in spans))


def limit(histories, start, end):
    """Of each history only what lies between `start` and `end` is left, but for `whole`."""
    for history in histories:
        history.whole = Whole(history.start, history.end, history.pieces)
        history.start, history.end = start, end
        history.pieces = {worker: [
            piece if start <= piece.start and piece.end <= end else
            dataclasses.replace(piece, start=max(piece.start, start), end=min(piece.end, end))
            for piece in pieces if piece.start < end and piece.end > start]
            for worker, pieces in history.pieces.items()}


def crop_to_tasks(histories, apart=0.05, few=0.05, least=0.1):
    """Limits all ranks to the time from the first task to the last, main not counted. A group of
    tasks at either end is left out, too, if it takes less than the share `few` of the time in
    tasks and lies further from the others than the share `apart` of the run: it belongs to set-up
    or checks. All is left where the rest is shorter than the share `least` of the run."""
    first, last = min(one.start for one in histories), max(one.end for one in histories)
    spans = sorted((piece.start, piece.end) for history in histories
                   for pieces in history.pieces.values() for piece in pieces
                   if piece.state is State.TASK and not history.tasks[piece.task].root)
    groups = []  # [start, end, time in tasks]
    for start, end in spans:
        if groups and start - groups[-1][1] <= apart * (last - first):
            groups[-1][1] = max(groups[-1][1], end)
            groups[-1][2] += end - start
        else:
            groups.append([start, end, end - start])
    least_time = few * sum(group[2] for group in groups)
    while groups and groups[0][2] < least_time:
        groups.pop(0)
    while groups and groups[-1][2] < least_time:
        groups.pop()
    if groups and groups[-1][1] - groups[0][0] >= least * (last - first):
        limit(histories, groups[0][0], groups[-1][1])


def describe_names(histories):
    """The names that tasks have, those of most time first, and no more than can be read."""
    most = 30
    times = collections.Counter()
    for history in histories:
        for pieces in history.pieces.values():
            for piece in pieces:
                if piece.state is State.TASK:
                    times[history.rank.names[piece.name].name] += piece.end - piece.start
    names = [name for name, _ in times.most_common()]
    if not names:
        return "no task has run"
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"names are: {', '.join(names[:most])}{more}"


class Unfit(Exception):
    """A record that does not fit to those before it, in a trace that was cut."""


@dataclasses.dataclass(**SLOTS)
class Worker:
    """Invariant: `stack` are the slices of the tasks on the stack that the worker stands on, the
    innermost last; everything before `since` is in `pieces`."""
    number: int
    since: int
    stack: list = dataclasses.field(default_factory=list)
    idle: bool = False
    pieces: list = dataclasses.field(default_factory=list)


class Player:
    """A suspension takes all tasks of a stack off their worker, a resume brings all back.

    The root task has no body that begins: unless the trace says else, worker 0 stands in it from
    the start."""

    def __init__(self, rank):
        self.rank = rank
        self.workers = {n: Worker(n, rank.start) for n in range(rank.workers)}
        self.slices = []
        self.messages = []
        self.tasks = {}
        self.collectives = []
        self.waits = []
        self.copies = []
        self.data = {}
        self.inside = {}  # task -> its Collective
        self.begun = {}  # number of a request -> its Collective
        self.futures = {}  # address -> its present Future
        self.given = {}  # number of a request -> the Future that the program got for it
        self.joins = {}  # worker -> the joint that its last record was about
        self.threads = set()  # tasks without a creator or a begin, such as an OpenMP thread's wait
        # for its next region: no time is counted for them
        self.away = {}  # innermost task of a suspended stack -> its tasks, outermost first
        if not begins_in_trace(rank):
            root = root_of(rank)
            rank.names.append(Name("main", ""))
            self.tasks[root] = Task(name=len(rank.names) - 1, priority=0, parent=0, root=True)
            self.enter(self.workers[0], rank.start, [root])

    def play(self, record):
        time, task, number, kind, a, b, c = record
        if kind != Kind.FUTURE_JOINS:
            self.joins.pop(number, None)
        if kind in (Kind.MESSAGE_SENT, Kind.MESSAGE_RECEIVED):
            self.messages.append(Message(time, number, kind == Kind.MESSAGE_SENT, signed(b),
                                         signed(b >> 32), a, c & LOW_HALF, task))
            if kind == Kind.MESSAGE_RECEIVED and c >> 32 in self.given:
                self.given[c >> 32].arrivals.append(self.messages[-1])
            return
        if kind > Kind.MESSAGE_RECEIVED:
            self.note(record)
            return
        if number == NO_WORKER:
            return  # it runs no task, and its idle time is its own affair
        worker = self.workers[number]
        self.pass_time(worker, time)
        if kind == Kind.TASK_BEGIN:
            if task in self.tasks:
                self.tasks[task].priority = signed(b)
                self.tasks[task].name = a  # what a compiler has made is known by now
            else:
                self.tasks[task] = Task(name=a, priority=signed(b), parent=c, root=c == 0)
            self.enter(worker, time, [task])
        elif kind == Kind.TASK_END:
            self.end(worker, time, task)
        elif kind == Kind.TASK_SUSPEND:
            if task in (piece.task for piece in worker.stack):  # else an inner one took it along
                self.suspend(worker, time, a, b if c == AWAITS_TASK else 0,
                             self.futures.get(b & ~WAS_SET) if c == AWAITS_FUTURE else None)
            elif task not in self.tasks:
                self.threads.add(task)
        elif kind == Kind.TASK_RESUME:
            self.resume(worker, time, task)
        else:
            worker.idle = kind == Kind.IDLE_BEGIN

    def note(self, record):
        """Notes a record that moves no worker: which tasks there are, and their messages."""
        time, task, worker, kind, a, b, c = record
        if kind in (Kind.COPY_SENT, Kind.COPY_ARRIVED):
            self.copies.append(Copy(time, worker, kind == Kind.COPY_SENT, c & DATUM_MAX, c >> 40,
                                    b >> 32, signed(b), a))
        elif kind == Kind.DATUM_NAMED:
            self.data[c] = self.rank.names[a].name
        elif kind == Kind.TASK_CREATE:
            # Clocks of two processors may differ a little: it may have begun elsewhere.
            parts = self.tasks[task].parts if task in self.tasks else 0
            self.tasks[task] = Task(name=a, priority=signed(b), parent=c, created=time, parts=parts)
        elif kind == Kind.TASK_ACCESS and task in self.tasks:
            self.tasks[task].accesses += ((a, b),)
            if b == AFTER and not a and c & ~WAS_SET in self.futures:
                self.tasks[task].futures += (self.futures[c & ~WAS_SET],)
        elif kind == Kind.TASK_PRIORITY and task in self.tasks:
            self.tasks[task].priority = signed(a)
        elif kind == Kind.MESSAGE_WAITED:
            self.waits.append(a)
        elif kind == Kind.COLLECTIVE_BEGIN:
            self.inside[task] = Collective(task, a, b & COLLECTIVE_BYTES_MAX, c & LOW_HALF, time)
            self.collectives.append(self.inside[task])
        elif kind == Kind.COLLECTIVE_END and task in self.inside:
            self.inside.pop(task).end = time
        elif kind == Kind.COLLECTIVE_POSTED:
            self.begun[c >> 32] = Collective(0, a, b & COLLECTIVE_BYTES_MAX, c & LOW_HALF, time,
                                             begun_by=task)
            self.collectives.append(self.begun[c >> 32])
        else:
            self.note_future(record)

    def note_future(self, record):
        """Notes which requests set which futures."""
        time, task, worker, kind, a, b, c = record
        if kind == Kind.REQUEST_GIVEN:
            # A joint may have named it before. Memory is used again: an old one has arrived.
            known = self.futures.get(b & ~WAS_SET)
            if known is None or known.arrivals or known.parts:
                known = self.futures[b & ~WAS_SET] = Future()
            self.given[c >> 32] = known
        elif kind == Kind.REQUEST_ENDED and c >> 32 in self.begun:
            one = self.begun.pop(c >> 32)
            one.end = time
            if c >> 32 in self.given:
                self.given[c >> 32].arrivals.append(one)
            else:
                one.task = task
        elif kind == Kind.FUTURE_JOINS and a == AWAITS_FUTURE:
            if self.joins.get(worker) != c:
                self.futures[c & ~WAS_SET] = Future()
            self.joins[worker] = c
            part = self.futures.setdefault(task & ~WAS_SET, Future())
            self.futures[c & ~WAS_SET].parts.append(part)

    def pass_time(self, worker, time):
        """Adds a piece for the worker's activity since its last event."""
        if time <= worker.since:
            return
        top = worker.stack[-1].task if worker.stack else 0
        state = State.IDLE if worker.idle else State.TASK if top else State.OVERHEAD
        name = self.tasks[top].name if state is State.TASK else -1
        last = worker.pieces[-1] if worker.pieces else None
        if last and last.state is state and last.task == top and last.end == worker.since:
            last.end = time
        else:
            worker.pieces.append(Piece(worker.since, time, state, top, name))
        worker.since = time

    def enter(self, worker, time, tasks):
        for task in tasks:
            self.tasks[task].parts += 1
            worker.stack.append(Slice(worker.number, time, time, task, self.tasks[task].parts))

    def leave(self, worker, time):
        """Takes everything off the worker's stack; returns the tasks, outermost first."""
        stack, worker.stack = worker.stack, []
        for piece in stack:
            piece.end = time
        self.slices += reversed(stack)
        return [piece.task for piece in stack]

    def suspend(self, worker, time, waits_for, waits_task, waits_future=None):
        worker.stack[-1].waits_for = waits_for
        worker.stack[-1].waits_task = waits_task
        worker.stack[-1].waits_future = waits_future
        tasks = self.leave(worker, time)
        self.away[tasks[-1]] = tasks

    def resume(self, worker, time, task):
        if task in self.threads or task in (piece.task for piece in worker.stack):
            return  # an inner task, resumed first, has brought it back
        if task not in self.away:
            # Clocks of two processors may differ a little: its suspension elsewhere comes later.
            for other in self.workers.values():
                if other.stack and other.stack[-1].task == task:
                    self.pass_time(other, time)
                    self.suspend(other, time, -1, 0)
        if task not in self.away:
            self.refuse(worker, time, task, "is resumed, but was not suspended")
        self.enter(worker, time, self.away.pop(task))

    def end(self, worker, time, task):
        if not worker.stack or worker.stack[-1].task != task:
            self.refuse(worker, time, task, "ends, but was not running there")
        ended = worker.stack.pop()
        ended.end = time
        self.slices.append(ended)

    def refuse(self, worker, time, task, what):
        if self.rank.is_partial:
            raise Unfit  # its threads went on while it was written: one may lack a record
        raise TraceError(f"rank {self.rank.rank}, worker {worker.number}, "
                         f"{(time - self.rank.start) / 1e6:.3f} ms: task {task} {what}")

    def finish(self):
        end = max([self.rank.end] + [worker.since for worker in self.workers.values()])
        for worker in self.workers.values():  # exit() leaves tasks open
            self.pass_time(worker, end)
            self.leave(worker, end)
        return History(rank=self.rank, start=self.rank.start, end=end,
                       pieces={w.number: w.pieces for w in self.workers.values()},
                       slices=self.slices, messages=self.messages, tasks=self.tasks,
                       collectives=self.collectives, waits=self.waits,
                       copies=self.copies, data=self.data)


def begins_in_trace(rank):
    """Returns whether the root task, which alone has neither parent nor creation, has a record of
    its begin."""
    created = {record[1] for record in rank.records if record[3] == Kind.TASK_CREATE}
    return any(record[3] == Kind.TASK_BEGIN and record[2] == 0 and record[6] == 0
               and record[1] not in created for record in rank.records)


def root_of(rank):
    """The one task that is suspended or resumed without having begun; if main never was suspended,
    a number that no task has."""
    begun = {record[1] for record in rank.records if record[3] == Kind.TASK_BEGIN}
    for _, task, worker, kind, *_ in rank.records:
        if (kind in (Kind.TASK_SUSPEND, Kind.TASK_RESUME) and worker != NO_WORKER
                and task not in begun):
            return task
    return -1


def signed(value):
    """The low 32 bits as a signed number: any tag and peer of MPI."""
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value
