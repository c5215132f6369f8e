# SPDX-License-Identifier: BSD-3-Clause
"""Walks backwards through a run: what was each moment waiting for?

The critical path is that walk from the end of the run. The same walk from the end of a worker's
idle time, back to its beginning, says what that worker was idle for. Used by report and page.
"""
import bisect
import collections
import dataclasses
import enum
import heapq

from imbrex_trace import graph
from imbrex_trace.history import SLOTS, State


OVERHEAD = ""  # instead of a task's name: the worker ran none


class Why(enum.Enum):
    TASK = "in tasks"
    MESSAGE = "messages in flight"
    READY = "ready, but no worker was free"
    WAIT = "waits for an event that the trace does not name"


@dataclasses.dataclass(**SLOTS)
class Step:
    """A part of the path: it leads from `start` to `end`."""
    why: Why
    start: int
    end: int
    rank: int  # of a message: who received it
    task: int
    peer: int = -1  # of a message: who sent it
    worker: int = -1  # where the task ran, or ran in the end
    bytes: int = 0  # of a message
    call: str = ""  # of a collective
    waits_for: str = ""  # of a wait: the name of what it waits for
    idle: int = 0  # of a wait on the critical path: how long a worker that could run it was idle
    ran: object = None  # of a wait on it: Counter, name -> ns that the workers ran it meanwhile


class Run:
    """All ranks, and what leads from one to another."""

    def __init__(self, histories):
        self.histories = {history.rank.rank: history for history in histories}
        self.start = min(history.start for history in histories)
        self.flights = [flight for flight in graph.flights(histories)
                        if flight.source in self.histories]
        self.last = graph.meetings(histories)
        arrived = collections.defaultdict(list)
        for flight in self.flights:
            arrived[flight.target].append(flight)
        self.ranks = {history.rank.rank: graph.index(history, arrived[history.rank.rank])
                      for history in histories}

    # ---- one step back -------------------------------------------------------------------------

    def walk(self, rank, one, time, stop):
        """Yields the path that leads to `time` in the slice `one`, last step first, back to `stop`.
        If a trace contradicts itself and would lead in a circle, the path ends."""
        seen, earliest = set(), time
        for _ in range(1_000_000):
            if one is None or time <= stop:
                return
            if time < earliest:
                seen, earliest = set(), time
            if (rank, one.task, one.part) in seen:
                return
            seen.add((rank, one.task, one.part))
            index = self.ranks[rank]
            arrival = self.awaited(index, one, time, stop)
            if arrival is not None:
                moment, cause = arrival
                yield Step(Why.TASK, moment, time, rank, one.task, worker=one.worker)
                rank, one, time = yield from self.over(rank, one, moment, cause)
                continue
            begin = min(one.start, time)
            yield Step(Why.TASK, begin, time, rank, one.task, worker=one.worker)
            rank, one, time = yield from self.enabled(rank, index, one, begin)

    def awaited(self, index, one, time, stop):
        """The last arrival for which the task waited in this slice before `time`."""
        arrivals = index.arrivals.get(one.task, ())
        waits = index.waits.get(one.task, ())
        position = bisect.bisect_left(Keys(arrivals, moment_of), time) - 1
        while position >= 0 and arrivals[position][0] >= max(one.start, stop):
            moment, cause = arrivals[position]
            before = arrivals[position - 1][0] if position > 0 else -1
            if one.part > 1 and before < one.start and not self.woken_by_task(index, one):
                return moment, cause
            if isinstance(cause, graph.Flight) and cause.sent >= one.start:
                return moment, cause
            last = bisect.bisect_right(Keys(waits, end_of), moment) - 1
            if last >= 0 and waits[last][1] >= max(one.start, before):
                return moment, cause
            position -= 1
        return None

    @staticmethod
    def woken_by_task(index, one):
        return index.parts[one.task][one.part - 2].waits_task != 0

    def over(self, rank, one, moment, cause):
        """Goes from the arrival to the task that sent it, or that came last."""
        if isinstance(cause, graph.Flight):
            peer, task, sent = cause.source, cause.send_task, cause.sent
            step = Step(Why.MESSAGE, sent, moment, rank, one.task, peer, one.worker, cause.bytes)
        else:
            peer, last = self.last[rank, id(cause)]
            task, sent = last.begun_by or last.task, min(last.start, moment)
            step = Step(Why.MESSAGE, sent, moment, rank, one.task, peer, one.worker,
                        call=self.histories[rank].rank.names[cause.name].name)
        yield step
        return peer, self.slice_at(self.ranks[peer], task, sent), sent

    @staticmethod
    def slice_at(index, task, time):
        """The task's part at `time`, or the last one before."""
        slices = index.parts.get(task, ())
        position = bisect.bisect_right(Keys(slices, lambda one: one.start), time) - 1
        return slices[position] if position >= 0 else None

    def enabled(self, rank, index, one, begin):
        """Finds the event that let this slice begin; yields the steps between."""
        if one.part > 1:
            before = index.parts[one.task][one.part - 2]
            arrival = index.last_of([before.waits_future] if before.waits_future else [], begin)
            if arrival is not None and arrival[0] > before.end:
                return (yield from self.arrived(rank, one, begin, arrival))
            cause = self.waker(index, one, before, begin)
            if cause is None:
                yield Step(Why.WAIT, before.end, begin, rank, one.task, worker=one.worker,
                           waits_for=name_of(index, before.waits_for))
                return rank, before, before.end
            task, time = cause
        else:
            task, time = self.maker(index, one, begin)
            arrival = index.last_of(index.history.tasks[one.task].futures, begin)
            if arrival is not None and arrival[0] > time:
                return (yield from self.arrived(rank, one, begin, arrival))
        time = min(time, begin)
        yield Step(Why.READY, time, begin, rank, one.task, worker=one.worker)
        return rank, self.slice_at(index, task, time), time

    def arrived(self, rank, one, begin, arrival):
        """A message or collective has set the future that the slice waited for."""
        moment, cause = arrival
        yield Step(Why.READY, moment, begin, rank, one.task, worker=one.worker)
        return (yield from self.over(rank, one, moment, cause))

    @staticmethod
    def waker(index, one, before, begin):
        """(task, time) of what ended the suspension, if that was a task of this rank."""
        if before.waits_task in index.parts:
            return before.waits_task, index.parts[before.waits_task][-1].end
        name = name_of(index, before.waits_for)
        if name not in ("taskwait", "finish", "end of the program"):
            return None
        position = bisect.bisect_right(index.ended, (begin, 1 << 64)) - 1
        for time, task in reversed(index.ended[max(0, position - 63):position + 1]):
            if time <= before.end:
                return None
            if task != one.task and descends(index.history.tasks, task, one.task):
                return task, time
        return None

    @staticmethod
    def maker(index, one, begin):
        """(task, time) of the last that the task had to follow, or of its creation."""
        task = index.history.tasks[one.task]
        best = (task.parent, task.created if task.created >= 0 else begin)
        for earlier in index.before.get(one.task, ()):
            slices = index.parts.get(earlier)
            if slices and slices[-1].end > best[1]:
                best = (earlier, slices[-1].end)
        return best

    # ---- the two questions ---------------------------------------------------------------------

    def critical_path(self):
        """The steps to the end of the run, the first one first, and where that end is."""
        ends = []
        for rank, index in self.ranks.items():
            end = index.history.end
            ends += [(min(one.end, end), rank, one) for slices in index.parts.values()
                     for one in slices[-1:] if one.start < end]
        if not ends:
            return []
        time, rank, one = max(ends, key=lambda entry: entry[0])
        path = [step for step in self.walk(rank, one, time, self.start) if step.end > step.start]
        for step in path:
            step.start = max(step.start, self.start)
            if step.why is not Why.TASK:
                self.look_around(step)
        return path[::-1]

    def look_around(self, step):
        """Finds what the workers did that could have run the step's task: those of its rank; for
        main, which is tied to its thread, that one."""
        history = self.histories[step.rank]
        tied = step.task in history.tasks and history.tasks[step.task].root
        idle, ran = [], collections.Counter()
        for worker in [step.worker] if tied else history.pieces:
            for piece in within(history.pieces.get(worker, ()), step.start, step.end):
                start, end = max(piece.start, step.start), min(piece.end, step.end)
                if piece.state is State.IDLE:
                    if worker not in history.rank.spare_workers:
                        idle.append((start, end))
                else:
                    ran[history.rank.names[piece.name].name if piece.state is State.TASK
                        else OVERHEAD] += end - start
        step.idle = sum(end - start for start, end in graph.united(idle))
        every = sum(ran.values())
        busy = step.end - step.start - step.idle  # no worker was idle: shared out among what ran
        step.ran = collections.Counter({name: time * busy / every for name, time in ran.items()}
                                       if busy else {})

    def idle_times(self):
        """(rank, piece, path to its end) for each time that a worker was idle."""
        for rank, index in self.ranks.items():
            for worker, pieces in index.history.own_pieces():
                for piece in pieces:
                    if piece.state is State.IDLE:
                        one, time = self.next_slice(index, worker, piece)
                        yield rank, piece, self.walk_to(rank, one, time, piece)

    def walk_to(self, rank, one, time, piece):
        if one is None:
            return
        steps = self.walk(rank, one, time, piece.start)
        if not piece.task:  # not the slice itself, which came afterwards, but what let it begin
            begin = one.start
            steps = (step for step in steps if step.start < begin)
        for step in steps:
            start, end = max(step.start, piece.start), min(step.end, piece.end)
            if end > start:
                yield dataclasses.replace(step, start=start, end=end)

    def in_the_way(self, step):
        """(task, time) of what the step's time went to: the task itself, or, while that was ready,
        those that its worker ran instead."""
        if step.why is Why.TASK:
            yield step.task, step.end - step.start
        if step.why is not Why.READY:
            return
        pieces = self.histories[step.rank].pieces.get(step.worker, ())
        for piece in within(pieces, step.start, step.end):
            if piece.state is State.TASK:
                yield piece.task, min(piece.end, step.end) - max(piece.start, step.start)

    @staticmethod
    def next_slice(index, worker, piece):
        """Returns the slice in which the worker went on after `piece`, and a time within it."""
        if piece.task:
            arrivals = index.arrivals.get(piece.task, ())
            position = bisect.bisect_left(Keys(arrivals, moment_of), piece.end)
            time = arrivals[position][0] + 1 if position < len(arrivals) else piece.end
            slices = index.parts.get(piece.task, ())
            for one in slices:
                if one.start <= piece.end <= one.end:
                    return one, min(time, one.end)
            return None, piece.end
        slices = index.starts.get(worker, ())
        position = bisect.bisect_left(Keys(slices, lambda one: one.start), piece.end)
        if position < len(slices):
            one = slices[position]
            # Its first arrival, if it was suspended for one, is what it went on for.
            return one, min(one.end, first_arrival(index, one) + 1)
        return None, piece.end


def within(pieces, start, end):
    """Yields the pieces of a worker that share time with [start, end)."""
    position = bisect.bisect_right(Keys(pieces, lambda piece: piece.end), start)
    while position < len(pieces) and pieces[position].start < end:
        yield pieces[position]
        position += 1


def name_of(index, position):
    return index.history.rank.names[position].name if position >= 0 else ""


def name_of_task(run, rank, number):
    history = run.histories[rank]
    task = history.tasks.get(number)
    return history.rank.names[task.name].name if task else "(no task)"


class Keys:
    """The keys of a list, for bisect, whose parameter `key` Python 3.9 does not have."""

    def __init__(self, items, key):
        self.items, self.key = items, key

    def __len__(self):
        return len(self.items)

    def __getitem__(self, position):
        return self.key(self.items[position])


def moment_of(arrival):
    return arrival[0]


def end_of(wait):
    return wait[1]


def first_arrival(index, one):
    if one.part == 1:
        return one.start
    arrivals = index.arrivals.get(one.task, ())
    position = bisect.bisect_left(Keys(arrivals, moment_of), one.start)
    return arrivals[position][0] if position < len(arrivals) else one.start


def descends(tasks, task, ancestor):
    for _ in range(64):
        if task == ancestor:
            return True
        if task not in tasks:
            return False
        task = tasks[task].parent
    return False


@dataclasses.dataclass
class Losses:
    """Idle time by what it was for; ns."""
    by_peer: dict  # (rank, peer) -> time before the message was there
    local: collections.Counter  # rank -> for tasks of the rank itself
    unknown: collections.Counter  # rank -> at the end of the run, and what the trace does not say
    by_task: collections.Counter  # (rank, task) -> time that workers anywhere were idle for it
    by_name: collections.Counter  # (rank, name) -> time that workers of other ranks were so

    def worst(self, count):
        return heapq.nlargest(count, self.by_task.items(), key=lambda entry: entry[1])


def losses(run):
    result = Losses(collections.Counter(), collections.Counter(), collections.Counter(),
                    collections.Counter(), collections.Counter())
    for rank, piece, steps in run.idle_times():
        left, gone = piece.end, False
        for step in steps:  # the last first
            for task, time in run.in_the_way(step):
                result.by_task[step.rank, task] += time
                if step.rank != rank:
                    result.by_name[step.rank, name_of_task(run, step.rank, task)] += time
            if gone:
                continue
            if step.why is Why.MESSAGE and step.peer != rank:
                result.by_peer[rank, step.peer] += step.end - piece.start
                result.local[rank] += left - step.end
                left, gone = piece.start, True
            else:
                result.local[rank] += left - step.start
                left = step.start
        result.unknown[rank] += left - piece.start
    return result
