# SPDX-License-Identifier: BSD-3-Clause
"""Rebuilds the tasks of a run and their steps, for a simulation by src/simulate/recorded.

A task computes from its begin to its end, less the time of tasks that ran inside, of its
suspensions, and of idle time. src/simulate/recorded/recorded_rank.hpp has the format of the file.
Refuses what cannot be simulated, with file and record.
"""
import array
import collections
import itertools

from imbrex_trace import graph, reader
from imbrex_trace.history import (ACTS, AFTER, AWAITS_FUTURE, AWAITS_TASK, COLLECTIVE_BYTES_MAX,
                                  LIBRARY_PROMISES, Collective, Message, Player, signed)
from imbrex_trace.reader import NO_WORKER, Kind, TraceError

# As Act in src/simulate/engine/program.hpp.
(COMPUTE, CREATE, CALL, BEGIN, AWAIT, SET, HOLD, RELEASE, OPEN_SCOPE, CLOSE_SCOPE,
 AWAIT_ALL) = range(11)
NONE, SEND, RECEIVE, COLLECTIVE, JOINT = range(5)  # as RecordedOperation::Kind
AWAITS_MESSAGE = 2  # field c of TASK_SUSPEND
EVERYTHING = 6  # the last kind of an access
WORD_MAX = 2**64 - 1
NO_NAME = 2**32 - 1
NOTHING = 0  # as a signal
WITHIN_A_CALL_NS = 5000  # between two requests that one call has found complete
SPAN_MAX_NS = 1 << 53
# Kinds whose records count whatever task they name.
OF_WORKERS = frozenset((Kind.TASK_BEGIN, Kind.TASK_END, Kind.TASK_SUSPEND, Kind.TASK_RESUME,
                        Kind.IDLE_BEGIN, Kind.IDLE_END, Kind.TASK_CREATE, Kind.TASK_ACCESS,
                        Kind.TASK_BOUND, Kind.TASK_ITERATION, Kind.FUTURE_SET, Kind.FUTURE_JOINS,
                        Kind.COPY_SENT, Kind.COPY_ARRIVED))
METHODS = {Kind.ACCESS_RELEASED: "release", Kind.TASK_HOLD: "hold", Kind.TASK_BOUND: "bind",
           Kind.FUTURE_AWAITED: "await_future", Kind.REQUEST_AWAITED: "await_request",
           Kind.SCOPE_BEGIN: "open_scope", Kind.SCOPE_END: "close_scope",
           Kind.CHILDREN_AWAITED: "await_children"}


def write(ranks, path):
    """Writes the steps of these ranks, whose heads reader.read_heads() has read. Returns what the
    steps do not contain, with the number of times."""
    names = sorted({name.name for rank in ranks for name in rank.names})
    numbers = {name: number for number, name in enumerate(names)}
    rebuilt = []
    with open(path, "wb") as file:
        words = array.array("Q", [len(names)])
        for name in names:
            data = name.encode("utf-8", "replace")
            words.append(len(data))
            words.frombytes(data + bytes(-len(data) % words.itemsize))
        words.append(len(ranks))
        for rank in ranks:
            rank.records = reader.read_records(rank)
            one = Rebuilder(rank)
            one.rebuild()
            words.append(len(one.works))
            for work in one.works.values():
                name = rank.names[work.name].name if work.name >= 0 else None
                work.write(words, numbers.get(name, NO_NAME))
            words.tofile(file)
            words = array.array("Q")
            one.works, one.tasks = {}, {}  # the next rank needs the memory
            rebuilt.append(one)
        match_messages(rebuilt)
        match_collectives(rebuilt)
        for one in rebuilt:
            words.extend((one.signals, len(one.operations)))
            for operation in one.operations:
                operation.write(words, lambda name, rank=one.rank: numbers[rank.names[name].name])
        words.tofile(file)
    return sum((one.left_out for one in rebuilt), collections.Counter())


def match_messages(rebuilt):
    """Gives a send and the receive that got it the same number."""
    for one in rebuilt:
        for message in one.messages:
            if not 0 <= message.peer < len(rebuilt):
                one.fail(f"a message with rank {message.peer}, but there are {len(rebuilt)} ranks",
                         message.call)
    number = 0
    for (source, target, tag, _), sent, received in graph.channels(rebuilt):
        for start, end in itertools.zip_longest(sent, received):
            if end is None:
                rebuilt[source].fail(f"a message to rank {target} with tag {tag} that no receive "
                                     "of its trace gets", start.call)
            if start is None:
                rebuilt[target].fail(f"a message of rank {source} with tag {tag} that its trace "
                                     "does not send", end.call)
            number += 1
            rebuilt[source].operations[start.call].number = number
            rebuilt[target].operations[end.call].number = number


def match_collectives(rebuilt):
    """Gives a call the same number on all ranks of its communicator."""
    members = collections.defaultdict(set)
    members[0] = set(range(len(rebuilt)))  # MPI_COMM_WORLD
    for one in rebuilt:
        for collective in one.collectives:
            members[collective.communicator].add(one.rank.rank)
    for number, ((name, communicator, place), together) in enumerate(
            graph.calls(rebuilt).items(), 1):
        lacking = members[communicator] - {rank for rank, _ in together}
        if lacking:
            rank, first = together[0]
            rebuilt[rank].fail(f"call {place + 1} of {name} on its communicator is not in the "
                               f"trace of rank {max(lacking)}", first.call)
        for rank, one in together:
            rebuilt[rank].operations[one.call].number = number


class Work:
    """A task and its steps."""
    __slots__ = ("number", "name", "priority", "is_tied", "signal", "accesses", "steps", "computed",
                 "scopes", "is_explained", "has_begun", "ended_at")

    def __init__(self, number, name, priority):
        self.number, self.name, self.priority = number, name, priority
        self.is_tied = self.has_begun = False
        self.signal = NOTHING  # of its completion
        self.accesses = []  # (address, or signal of kind AFTER; kind; end of a range, or 0)
        self.steps = []  # [act, number, amount]
        self.computed = 0  # ns that are not yet in a step
        self.scopes = 0  # open ones
        self.is_explained = False  # the next suspension is that of its last step
        self.ended_at = -1

    def write(self, words, name):
        words.extend((name, self.priority & WORD_MAX, self.is_tied, self.signal,
                      len(self.accesses)))
        words.extend(itertools.chain.from_iterable(self.accesses))
        words.append(len(self.steps))
        words.extend(itertools.chain.from_iterable(self.steps))


class Operation:
    __slots__ = ("what", "record", "signal", "after", "number")

    def __init__(self, what, record):
        self.what = what  # a Message, a Collective, or the signals of a joint
        self.record = record
        self.signal = NOTHING  # of its end
        self.after = NOTHING  # of what it follows
        self.number = 0  # of the message, or of the collective call

    def write(self, words, number_of_name):
        what = self.what
        if isinstance(what, Message):
            words.extend((NONE if what.time < 0 else SEND if what.sent else RECEIVE, self.signal))
            if what.time >= 0:
                words.extend((what.peer, what.tag & WORD_MAX, self.number,
                              min(what.bytes, COLLECTIVE_BYTES_MAX), self.after))
        elif isinstance(what, Collective):
            words.extend((COLLECTIVE, self.signal, what.root & WORD_MAX, number_of_name(what.name),
                          self.number, what.bytes))
        else:
            words.extend((JOINT, self.signal, len(what), *what))


class Rebuilder(Player):
    """Plays the records of one rank into steps.

    Invariant: a signal is set once, by the completion of a task or of a request, or by a step."""

    def __init__(self, rank):
        self.signals = 0
        self.operations = []
        self.left_out = collections.Counter()  # what the steps do not contain
        self.outside = []  # steps of no task: main's first ones
        self.unset = set()  # signals that no step sets yet
        self.set_at = {}  # signal -> time
        self.ended = {}  # worker -> Work that has ended there last
        self.received = {}  # worker -> signal of the last message of a request
        self.joints = {}  # worker -> signals of its last joint: of one of all parts, or of any
        self.any = []  # the joints of any part, as in `joints`
        self.record = None
        super().__init__(rank)
        self.slices = collections.deque(maxlen=0)  # nobody asks for them
        self.methods.update((kind, getattr(self, name)) for kind, name in METHODS.items())
        self.main = Work(0, -1, 0)
        self.main.has_begun = self.root in self.tasks
        self.works = {self.root: self.main}  # by task, in the order of their creation

    def rebuild(self):
        self.check_records()
        records = self.rank.records[::-1]
        self.rank.records = ()
        while records:  # each leaves its memory to the steps
            self.play(records.pop())
        self.messages = [one for one in self.messages if one.time >= 0]
        self.finish_steps()

    def fail(self, what, call=None):
        """Refuses the present record, or that of an operation."""
        record = self.record if call is None else self.operations[call].record
        position = reader.position_of(self.rank, record)
        raise TraceError(f"{self.rank.path}: record {position}: {what}")

    def refuse(self, worker, time, task, what):
        self.fail(f"task {task} {what}")

    def check_records(self):
        """Checks that all are of one time, and that main is the one task that was not created."""
        created = {record[1] for record in self.rank.records if record[3] == Kind.TASK_CREATE}
        for self.record in self.rank.records:
            time, task, worker, kind, _, _, c = self.record
            if abs(time - self.rank.start) > SPAN_MAX_NS:
                self.fail(f"its time, {time} ns, is more than 100 days from the start of the rank")
            task = c if kind == Kind.TASK_CREATE else task
            if (kind in ACTS and worker != NO_WORKER and task not in (0, self.root)
                    and task not in created):
                self.fail(f"task {task}, in a record of kind {kind}, was not created by a task: a "
                          "program whose threads have tasks of their own, or OpenMP's regions, "
                          "cannot be simulated")

    def play(self, record):
        self.record = record
        time, _, number, kind, *_ = record
        if number != NO_WORKER:
            self.pass_time(self.workers[number], time)
        if self.counts(record) if number != NO_WORKER else self.counts_outside(record):
            super().play(record)

    def counts(self, record):
        """Whether the record is of a task or of what the library does for one."""
        _, task, _, kind, _, _, c = record
        if kind in OF_WORKERS or task in self.works:
            return True
        if task == 0:
            return kind in (Kind.MESSAGE_SENT, Kind.REQUEST_GIVEN) or (
                kind == Kind.MESSAGE_RECEIVED and c >> 32 in self.requests)
        if kind in ACTS:
            self.fail(f"task {task} was not created")
        return False  # a poll of another thread of the library

    def counts_outside(self, record):
        """counts() for a thread that is no worker: it may poll for the library, and so complete
        requests of tasks."""
        _, task, _, kind, _, _, c = record
        if kind in (Kind.FUTURE_SET, Kind.REQUEST_GIVEN):
            return True
        if kind == Kind.REQUEST_ENDED:
            return c >> 32 in self.given
        if kind not in (Kind.TASK_CREATE, Kind.MESSAGE_SENT, Kind.MESSAGE_RECEIVED):
            return False
        if not (c >> 32 in self.requests if kind == Kind.MESSAGE_RECEIVED else
                c == 0 if kind == Kind.TASK_CREATE else task == 0):
            self.fail("a thread that is no worker creates a task or communicates: such a program "
                      "cannot be simulated")
        return True

    def pass_time(self, worker, time):
        if time > worker.since:
            if worker.stack and not worker.idle:
                self.works[worker.stack[-1].task].computed += time - worker.since
            worker.since = time

    # ---- tasks ---------------------------------------------------------------------------------

    def work_of(self, task):
        if task not in self.works:
            self.fail(f"task {task} was not created")
        return self.works[task]

    def add(self, work, act, number=0, amount=0):
        """Adds a step behind what the task has computed."""
        if work.computed > 0:
            work.steps.append([COMPUTE, 0, work.computed])
            work.computed = 0
        work.is_explained = False
        work.steps.append([act, number, amount])

    def create(self, time, task, number, a, b, c):
        parent = self.creator_of(number, c)
        if task in self.works:
            self.fail(f"task {task} is created twice")
        super().create(time, task, number, a, b, c)
        self.works[task] = Work(len(self.works), a, signed(b))
        is_explained = parent.is_explained
        self.add(parent, CREATE, self.works[task].number)
        parent.is_explained = is_explained and c == 0

    def creator_of(self, number, parent):
        """A task that the library creates has no parent. The task that runs on the worker creates
        it here, or the one that has ended there last: such a task destroys what ended tasks leave
        behind."""
        if parent:
            return self.work_of(parent)
        stack = self.workers[number].stack if number != NO_WORKER else ()
        return self.works[stack[-1].task] if stack else self.ended.get(number, self.main)

    def access(self, time, task, number, a, b, c):
        work = self.work_of(task)
        accesses = work.accesses
        if work.has_begun:
            self.fail(f"an access of task {task}, which has begun")
        if b > EVERYTHING:
            self.fail(f"an access of the unknown kind {b}")
        if b == AFTER:
            signal = self.signal_of(AWAITS_TASK, a) if a else self.signal_of(AWAITS_FUTURE, c)
            if signal != NOTHING:
                accesses.append((signal, b, 0))
        elif b == EVERYTHING:
            accesses.append((0, b, 0))
        elif a == 0:
            self.fail("an access without an address")
        elif a + c > WORD_MAX:
            self.fail("a range that goes beyond the last address")
        else:
            accesses.append((a, b, a + c if c else 0))

    def iterate(self, time, task, *rest):
        """A worker has created the task while its parent waits for the end of an iterate(): the
        parent creates it before that, as a loop would."""
        super().iterate(time, task, *rest)
        steps = self.work_of(self.tasks[task].parent).steps
        if len(steps) > 1 and steps[-2][0] == CLOSE_SCOPE:
            steps[-2:] = steps[-1], steps[-2]

    def bind(self, time, task, number, a, b, c):
        self.work_of(task).is_tied = b != 0
        if a:
            self.left_out["the place of a task"] += 1

    def begin(self, time, task, number, a, b, c):
        work = self.work_of(task)
        if work.has_begun:
            self.fail(f"task {task} begins twice")
        work.has_begun = True
        work.name = a  # what a compiler has made is known by now
        super().begin(time, task, number, a, b, c)

    def end(self, time, task, number, *_):
        super().end(time, task, number)
        self.ended[number] = self.works[task]
        self.works[task].ended_at = time

    def suspend(self, time, task, number, a, b, c):
        if task in (piece.task for piece in self.workers[number].stack):
            what = self.rank.names[a].name
            gives_way = what in ("yield", "end of the program")
            if (c == 0 and not self.works[task].is_explained and not gives_way
                    or c == AWAITS_MESSAGE and "robe" in what):
                self.left_out[what] += 1
        super().suspend(time, task, number, a, b, c)

    def release(self, time, task, number, a, b, c):
        sizes = [end - a for address, _, end in self.works[task].accesses if end and address == a]
        self.add(self.works[task], RELEASE, sizes[-1] % 2**32 if sizes else 0, a)

    def open_scope(self, time, task, *_):
        self.works[task].scopes += 1
        self.add(self.works[task], OPEN_SCOPE)

    def close_scope(self, time, task, *_):
        work = self.works[task]
        if work.scopes == 0:
            self.fail("a finish() ends that has not begun")
        work.scopes -= 1
        self.add(work, CLOSE_SCOPE)
        work.is_explained = True

    def await_children(self, time, task, number, a, *_):
        self.add(self.works[task], AWAIT_ALL, int(a != 0))
        self.works[task].is_explained = True

    # ---- what tasks wait for -------------------------------------------------------------------

    def new_signal(self):
        self.signals += 1
        return self.signals

    def signal_of(self, what, number):
        """NOTHING if the trace does not tell, or if nobody needs to wait."""
        if what == AWAITS_FUTURE:
            future = self.future_of(number)
            if future is not None and future.signal == NOTHING:
                future.signal = self.new_signal()
                self.unset.add(future.signal)
            return future.signal if future is not None else NOTHING
        work = self.works.get(number) if what == AWAITS_TASK else None
        if work is None:
            return NOTHING
        work.signal = work.signal or self.new_signal()
        return work.signal

    def wait(self, work, signal):
        if signal == NOTHING:
            return
        if work.steps and work.steps[-1][0] == AWAIT and work.computed < WITHIN_A_CALL_NS:
            work.computed = 0
        self.add(work, AWAIT, signal, 1)
        work.is_explained = True

    def await_future(self, time, task, number, a, b, c):
        self.wait(self.works[task], self.signal_of(c, b))

    def await_request(self, time, task, number, a, b, c):
        if b:
            self.left_out[f"{self.rank.names[a].name}: it waits for the requests that it found "
                          "complete in the trace"] += 1
        self.works[task].is_explained = True

    def hold(self, time, task, number, a, b, c):
        signal = self.signal_of(c, b)
        if c == 0:
            self.left_out["release_after() of an event"] += 1
        if signal != NOTHING and task != self.root:
            self.add(self.works[task], HOLD, signal)

    def set_future(self, time, task, number, a, b, c):
        future = super().set_future(time, task, number, a, b, c)
        if future is None:
            return
        future.signal = future.signal or self.new_signal()
        self.set_at.setdefault(future.signal, time)
        self.unset.discard(future.signal)
        work = self.works.get(task)
        by_library = self.rank.names[a].name in LIBRARY_PROMISES
        if task and work is not None and work.ended_at < 0 and not by_library:
            self.add(work, SET, future.signal)
        else:
            self.outside.append([SET, future.signal, 0])

    def join(self, time, task, number, a, b, c):
        """A joint of all parts is a task of the library that follows them. A joint of any follows
        the part that was set first in the run."""
        part = self.signal_of(a, task)
        is_new = self.joins.get(number) != c
        super().join(time, task, number, a, b, c)
        if is_new:
            joint = self.add_operation([], 0)
            joint.signal = self.futures[c & ~1].signal = self.new_signal()
            self.joints[number] = joint.what, []
            stack = self.workers[number].stack
            self.add(self.works[stack[-1].task] if stack else self.main, BEGIN,
                     len(self.operations) - 1)
            if b:
                self.any.append(self.joints[number])
                self.left_out["when_any(): it is set by the part that was set first in the "
                              "run"] += 1
        if part != NOTHING:
            self.joints[number][b != 0].append(part)

    # ---- messages ------------------------------------------------------------------------------

    def add_operation(self, what, request):
        """`request`: its number, or 0."""
        operation = Operation(what, self.record)
        if request:
            operation.signal = self.new_signal()
        self.operations.append(operation)
        return operation

    def check_new(self, request):
        if request and request in self.requests:
            self.fail(f"request {request} begins twice")

    def begin_operation(self, task, what, request, act=BEGIN):
        """Adds the operation, and the step of the task that begins it."""
        what.call = len(self.operations)
        operation = self.add_operation(what, request)
        if task:
            self.add(self.works[task], act, what.call)
        else:
            self.outside.append([act, what.call, 0])
        return operation

    def send(self, time, task, number, a, b, c):
        """Without a task, the library sends what the message that it has received last here has
        brought."""
        request = c >> 32
        if task == 0 and (number not in self.received or not request):
            self.fail("a message of no task, which passes no other one on")
        self.check_new(request)
        super().send(time, task, number, a, b, c)
        operation = self.begin_operation(task, self.messages[-1], request,
                                         BEGIN if request else CALL)
        if task == 0:
            operation.after = self.received[number]

    def post(self, time, task, number, a, b, c):
        self.check_new(c >> 32)
        super().post(time, task, number, a, b, c)
        self.begin_operation(task, self.messages[-1], c >> 32)

    def receive(self, time, task, number, a, b, c):
        one = self.requests.get(c >> 32)
        if one is not None and (not isinstance(one, Message) or one.sent or one.time >= 0):
            self.fail(f"request {c >> 32} receives twice, or is no receive")
        super().receive(time, task, number, a, b, c)
        if one is None:
            self.begin_operation(task, self.messages[-1], 0, CALL)
        else:
            self.received[number] = self.operations[one.call].signal

    def begin_collective(self, time, task, number, a, b, c):
        super().begin_collective(time, task, number, a, b, c)
        operation = self.begin_operation(task, self.collectives[-1], 0)
        operation.signal = self.new_signal()
        self.wait(self.works[task], operation.signal)

    def post_collective(self, time, task, number, a, b, c):
        self.check_new(c >> 32)
        super().post_collective(time, task, number, a, b, c)
        self.begin_operation(task, self.collectives[-1], c >> 32)

    def give(self, time, task, number, a, b, c):
        one = self.requests.get(c >> 32)
        if one is None:
            return
        super().give(time, task, number, a, b, c)
        future, operation = self.given[c >> 32], self.operations[one.call]
        if future.signal != NOTHING:  # it was named before
            self.unset.discard(future.signal)
            operation.signal = future.signal
        future.signal = operation.signal

    def end_request(self, time, task, number, a, b, c):
        """A request that was handed over ends without its task."""
        super().end_request(time, task, number, a, b, c)
        one = self.requests.get(c >> 32)
        if one is None:
            return
        signal = self.operations[one.call].signal
        self.set_at.setdefault(signal, time)
        if c >> 32 not in self.given:
            self.wait(self.works[task], signal)

    def refuse_copy(self, *_):
        self.fail("a copy of a datum with an owner: a recorded run on data with owners cannot be "
                  "simulated")

    send_copy = receive_copy = refuse_copy

    # ---- the end -------------------------------------------------------------------------------

    def finish_steps(self):
        self.follow_first_parts()
        never = {operation.signal for operation in self.operations
                 if isinstance(operation.what, Message) and operation.what.time < 0}
        for operation in self.operations:
            if isinstance(operation.what, list):
                operation.what = [signal for signal in operation.what if signal not in never]
        lost = set()
        for work in self.works.values():
            self.finish_work(work, never)
            lost.update(address for address, kind, _ in work.accesses
                        if kind == AFTER and address in never)
        # Main's clock starts with its first step.
        if self.main.steps and self.main.steps[0][0] == COMPUTE:
            del self.main.steps[0]
        self.main.steps[:0] = self.outside + [[SET, signal, 0] for signal in
                                              sorted(self.unset) + sorted(lost)]

    def follow_first_parts(self):
        """Each joint of any part follows the first one."""
        for work in self.works.values():
            if work.signal != NOTHING and work.ended_at >= 0:
                self.set_at.setdefault(work.signal, work.ended_at)
        for after, parts in self.any:
            parts = [signal for signal in parts if signal in self.set_at]
            if parts:
                after.append(min(parts, key=self.set_at.get))

    def finish_work(self, work, never):
        if work.computed > 0 and work is not self.main:
            work.steps.append([COMPUTE, 0, work.computed])
        work.steps += [[CLOSE_SCOPE, 0, 0]] * work.scopes
        # Nobody sent what these receives waited for.
        work.steps = [step for step in work.steps
                      if not (step[0] in (AWAIT, HOLD) and step[1] in never or step[0] == BEGIN
                              and self.operations[step[1]].signal in never)]
        behind = 0  # waits of one call: the first one waits for all of them
        for step in reversed(work.steps):
            behind = behind + 1 if step[0] == AWAIT else 0
            if behind:
                step[2] = behind
