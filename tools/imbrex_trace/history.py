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
REQUEST, JOINT, PROMISE = "request", "joint", "promise"  # what sets a future
# Promises that the library sets in a poll, whatever task runs: a message that when_arrived() waits
# for, a whole collective. The part of a collective that is no message is set by a task.
LIBRARY_PROMISES = ("arrived message", "collective", "duplicate of a communicator")
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
    call: int = -1  # its position in Rebuilder.operations


@dataclasses.dataclass(**SLOTS)
class Future:
    """A future that is no task."""
    source: str = ""  # what sets it; empty: the records so far do not tell
    is_set: bool = False
    arrivals: list = dataclasses.field(default_factory=list)  # of received Message, Collective
    parts: list = dataclasses.field(default_factory=list)  # of Future
    signal: int = 0  # its number in Rebuilder; 0: none yet

    def all_arrivals(self):
        found, left = {id(self)}, [self]  # in a damaged trace they may be parts of each other
        while left:
            one = left.pop()
            yield from one.arrivals
            left += [part for part in one.parts if id(part) not in found]
            found.update(map(id, one.parts))


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
    root: int
    end: int = -1  # -1: it is still in it at the end
    begun_by: int = 0  # of a non-blocking one: the task
    call: int = -1  # its position in Rebuilder.operations


@dataclasses.dataclass(**SLOTS)
class Task:
    name: int
    priority: int
    parent: int
    parts: int = 0
    root: bool = False  # the code of main, which no task spawned
    iteration: int = -1  # of iterate(), from the second period on; -1: none
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
    messages: list  # of Message, in order of the calls that began them
    tasks: dict  # id -> Task; those that never began have no parts
    collectives: list  # of Collective, in order of their begins
    waits: list  # ns that long messages have waited for their turn
    copies: list  # of Copy, in order of time
    data: dict  # number of a datum -> its name
    whole: object = None  # a Whole, if `start`, `end` and `pieces` are of a part of the run

    def own_pieces(self):
        """(worker, its pieces) of the workers whose processors belong to this rank."""
        return [(worker, pieces) for worker, pieces in self.pieces.items()
                if worker not in self.rank.spare_workers]


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
        self.messages = []  # also receives whose message has not arrived: their time is -1
        self.tasks = {}
        self.collectives = []
        self.waits = []
        self.copies = []
        self.data = {}
        self.inside = {}  # task -> its Collective
        self.requests = {}  # number -> its Message or Collective
        self.futures = {}  # address -> its present Future
        self.given = {}  # number of a request -> the Future that the program got for it
        self.joins = {}  # worker -> the joint that its last record was about
        self.threads = set()  # tasks without a creator or a begin, such as an OpenMP thread's wait
        # for its next region: no time is counted for them
        self.away = {}  # innermost task of a suspended stack -> its tasks, outermost first
        self.methods = {kind: getattr(self, name) for kind, name in METHODS.items()}
        self.root, begins = root_of(rank)
        if not begins:
            rank.names.append(Name("main", ""))
            self.tasks[self.root] = Task(name=len(rank.names) - 1, priority=0, parent=0, root=True)
            self.enter(self.workers[0], rank.start, [self.root])

    def play(self, record):
        time, task, number, kind, a, b, c = record
        if kind != Kind.FUTURE_JOINS:
            self.joins.pop(number, None)
        if kind <= Kind.IDLE_END:
            if number == NO_WORKER:
                return  # it runs no task, and its idle time is its own affair
            self.pass_time(self.workers[number], time)
        if kind in self.methods:
            self.methods[kind](time, task, number, a, b, c)

    # ---- one method for each kind of record ----------------------------------------------------

    def begin(self, time, task, number, a, b, c):
        if task in self.tasks:
            self.tasks[task].priority = signed(b)
            self.tasks[task].name = a  # what a compiler has made is known by now
        else:
            self.tasks[task] = Task(name=a, priority=signed(b), parent=c, root=c == 0)
        self.enter(self.workers[number], time, [task])

    def end(self, time, task, number, *_):
        worker = self.workers[number]
        if not worker.stack or worker.stack[-1].task != task:
            self.refuse(worker, time, task, "ends, but was not running there")
        ended = worker.stack.pop()
        ended.end = time
        self.slices.append(ended)

    def suspend(self, time, task, number, a, b, c):
        worker = self.workers[number]
        if task in (piece.task for piece in worker.stack):  # else an inner one took it along
            self.take_off(worker, time, a, b if c == AWAITS_TASK else 0,
                          self.future_of(b) if c == AWAITS_FUTURE else None)
        elif task not in self.tasks:
            self.threads.add(task)

    def resume(self, time, task, number, *_):
        worker = self.workers[number]
        if task in self.threads or task in (piece.task for piece in worker.stack):
            return  # an inner task, resumed first, has brought it back
        if task not in self.away:
            # Clocks of two processors may differ a little: its suspension elsewhere comes later.
            for other in self.workers.values():
                if other.stack and other.stack[-1].task == task:
                    self.pass_time(other, time)
                    self.take_off(other, time, -1, 0)
        if task not in self.away:
            self.refuse(worker, time, task, "is resumed, but was not suspended")
        self.enter(worker, time, self.away.pop(task))

    def begin_idle(self, time, task, number, *_):
        self.workers[number].idle = True

    def end_idle(self, time, task, number, *_):
        self.workers[number].idle = False

    def create(self, time, task, number, a, b, c):
        if task not in self.tasks:  # a damaged trace may create it twice
            self.tasks[task] = Task(name=a, priority=signed(b), parent=c, created=time)

    def iterate(self, time, task, number, a, *_):
        if task in self.tasks:
            self.tasks[task].iteration = a

    def access(self, time, task, number, a, b, c):
        if task not in self.tasks:
            return
        self.tasks[task].accesses += ((a, b),)
        future = self.future_of(c) if b == AFTER and not a else None
        if future is not None:
            self.tasks[task].futures += (future,)

    def raise_priority(self, time, task, number, a, *_):
        if task in self.tasks:
            self.tasks[task].priority = signed(a)

    def send(self, time, task, number, a, b, c):
        self.messages.append(Message(time, number, True, signed(b), signed(b >> 32), a,
                                     c & LOW_HALF, task))
        if c >> 32:
            self.requests[c >> 32] = self.messages[-1]

    def post(self, time, task, number, a, b, c):
        self.messages.append(Message(-1, number, False, signed(b), signed(b >> 32), a,
                                     c & LOW_HALF, task))
        self.requests[c >> 32] = self.messages[-1]

    def receive(self, time, task, number, a, b, c):
        one = self.requests.get(c >> 32) if c >> 32 else None
        if isinstance(one, Message) and not one.sent and one.time < 0:
            one.time, one.worker, one.peer, one.tag, one.bytes, one.task = (
                time, number, signed(b), signed(b >> 32), a, task)
        else:
            one = Message(time, number, False, signed(b), signed(b >> 32), a, c & LOW_HALF, task)
            self.messages.append(one)
        if c >> 32 in self.given:
            self.given[c >> 32].arrivals.append(one)

    def wait_for_turn(self, time, task, number, a, *_):
        self.waits.append(a)

    def begin_collective(self, time, task, number, a, b, c):
        self.inside[task] = Collective(task, a, b & COLLECTIVE_BYTES_MAX, c & LOW_HALF, time,
                                       (b >> 40) - 1)
        self.collectives.append(self.inside[task])

    def end_collective(self, time, task, *_):
        if task in self.inside:
            self.inside.pop(task).end = time

    def post_collective(self, time, task, number, a, b, c):
        self.collectives.append(Collective(0, a, b & COLLECTIVE_BYTES_MAX, c & LOW_HALF, time,
                                           (b >> 40) - 1, begun_by=task))
        self.requests[c >> 32] = self.collectives[-1]

    def end_request(self, time, task, number, a, b, c):
        one = self.requests.get(c >> 32)
        if not isinstance(one, Collective) or one.end >= 0:
            return
        one.end = time
        if c >> 32 in self.given:
            self.given[c >> 32].arrivals.append(one)
        else:
            one.task = task

    def give(self, time, task, number, a, b, c):
        # A joint may have named the future before.
        future = self.futures.get(b & ~WAS_SET)
        if future is None or future.source:
            future = self.futures[b & ~WAS_SET] = Future()
        future.source = REQUEST
        self.given[c >> 32] = future

    def set_future(self, time, task, number, a, b, c):
        """Returns the future that the program sets; None if a request or the library does."""
        by_library = self.rank.names[a].name in LIBRARY_PROMISES
        future = self.futures.get(c)
        if future and (future.source == REQUEST or future.source == JOINT and by_library):
            future.is_set = True
            return None
        if future is None or future.is_set or future.source == JOINT:
            future = self.futures[c] = Future()
        future.source, future.is_set = PROMISE, True
        return future

    def join(self, time, task, number, a, b, c):
        part = self.future_of(task) if a == AWAITS_FUTURE else None
        if self.joins.get(number) != c:
            self.futures[c & ~WAS_SET] = Future(JOINT)
        self.joins[number] = c
        joint = self.futures[c & ~WAS_SET]
        if part is not None and part is not joint:
            joint.parts.append(part)

    def send_copy(self, time, task, number, a, b, c):
        self.copies.append(Copy(time, number, True, c & DATUM_MAX, c >> 40, b >> 32, signed(b), a))

    def receive_copy(self, time, task, number, a, b, c):
        self.copies.append(Copy(time, number, False, c & DATUM_MAX, c >> 40, b >> 32, signed(b), a))

    def name_datum(self, time, task, number, a, b, c):
        self.data[c] = self.rank.names[a].name

    # ---- what they need ------------------------------------------------------------------------

    def future_of(self, number):
        """The future that a record names; None if it was set, and no record tells by what. Memory
        is used again: without the bit the number is that of the future to be set next."""
        known = self.futures.get(number & ~WAS_SET)
        if not number & WAS_SET and (known is None or known.is_set):
            known = self.futures[number] = Future()
        return known

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

    def take_off(self, worker, time, waits_for, waits_task, waits_future=None):
        """Suspends all tasks of the worker's stack."""
        worker.stack[-1].waits_for = waits_for
        worker.stack[-1].waits_task = waits_task
        worker.stack[-1].waits_future = waits_future
        tasks = self.leave(worker, time)
        self.away[tasks[-1]] = tasks

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
                       slices=self.slices, tasks=self.tasks,
                       messages=[one for one in self.messages if one.time >= 0],
                       collectives=self.collectives, waits=self.waits,
                       copies=self.copies, data=self.data)


METHODS = {
    Kind.TASK_BEGIN: "begin", Kind.TASK_END: "end", Kind.TASK_SUSPEND: "suspend",
    Kind.TASK_RESUME: "resume", Kind.IDLE_BEGIN: "begin_idle", Kind.IDLE_END: "end_idle",
    Kind.MESSAGE_SENT: "send", Kind.MESSAGE_RECEIVED: "receive", Kind.TASK_CREATE: "create",
    Kind.TASK_ACCESS: "access", Kind.TASK_PRIORITY: "raise_priority",
    Kind.COLLECTIVE_BEGIN: "begin_collective", Kind.COLLECTIVE_END: "end_collective",
    Kind.MESSAGE_WAITED: "wait_for_turn", Kind.DATUM_NAMED: "name_datum",
    Kind.COPY_SENT: "send_copy", Kind.COPY_ARRIVED: "receive_copy",
    Kind.FUTURE_SET: "set_future", Kind.FUTURE_JOINS: "join", Kind.RECEIVE_POSTED: "post",
    Kind.COLLECTIVE_POSTED: "post_collective", Kind.REQUEST_ENDED: "end_request",
    Kind.REQUEST_GIVEN: "give", Kind.TASK_ITERATION: "iterate"}
# Kinds whose records show that the task acts; of a creation, that its parent does.
ACTS = (Kind.TASK_BEGIN, Kind.TASK_SUSPEND, Kind.TASK_RESUME, Kind.TASK_CREATE, Kind.MESSAGE_SENT,
        Kind.SCOPE_BEGIN, Kind.COLLECTIVE_BEGIN, Kind.FUTURE_AWAITED)


def root_of(rank):
    """The id of main, and whether a record says that it begins. Main alone has neither parent nor
    creation; without a begin it is the first task that is suspended or resumed without having
    begun, or if there is none, that acts so. -1: main does nothing that is recorded."""
    created = {record[1] for record in rank.records if record[3] == Kind.TASK_CREATE}
    begun = {record[1]: record for record in rank.records if record[3] == Kind.TASK_BEGIN}
    for task, record in begun.items():
        if record[2] == 0 and record[6] == 0 and task not in created:
            return task, True
    for kinds in (Kind.TASK_SUSPEND, Kind.TASK_RESUME), ACTS:
        for _, task, worker, kind, _, _, c in rank.records:
            task = c if kind == Kind.TASK_CREATE else task
            if (kind in kinds and worker != NO_WORKER and task and task not in begun
                    and task not in created):
                return task, False
    return -1, False


def signed(value):
    """The low 32 bits as a signed number: any tag and peer of MPI."""
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value
