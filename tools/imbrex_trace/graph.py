# SPDX-License-Identifier: BSD-3-Clause
"""The order that a program requires of its tasks and messages, within a rank and across ranks.

Used by blame, page and steps. Edges come from the accesses that tasks declare, by the rules of the
runtime's dependency table.
"""
import collections
import dataclasses

from imbrex_trace.history import SLOTS, State

READS, WRITES, UPDATES, MUTEX_SET, SET, AFTER, EVERYTHING = range(7)  # kinds of accesses


@dataclasses.dataclass(**SLOTS)
class Flight:
    """A message that was both sent and received."""
    source: int  # rank
    target: int
    sent: int  # time
    received: int
    bytes: int
    tag: int
    communicator: int
    send_task: int  # 0 for none
    receive_task: int
    send_worker: int
    receive_worker: int
    arrival: object = None  # the received Message


class Place:
    """The accesses to one address that tasks have declared: the last writers, or the tasks that
    share it, and the readers since."""
    __slots__ = ("owners", "kind", "readers", "before")

    def __init__(self):
        self.owners, self.kind, self.readers, self.before = [], None, [], []

    def enter(self, task, kind):
        """The tasks that `task` must follow."""
        if kind == READS:
            self.readers.append(task)
            return self.owners
        if kind in (MUTEX_SET, SET):
            if not self.owners or self.kind != kind or self.readers:
                self.before = self.readers or self.owners
                self.owners, self.readers, self.kind = [], [], kind
            self.owners.append(task)
            return self.before
        earlier = self.readers or self.owners
        self.owners, self.readers, self.before, self.kind = [task], [], [], kind
        return earlier


def predecessors(history):
    """task -> the tasks that it must follow, each once; without those that follow none."""
    places = collections.defaultdict(lambda: collections.defaultdict(Place))  # by parent, address
    last = {}  # parent -> its last child with an access to everything
    result = {}
    for number, task in history.tasks.items():  # a parent makes its children in this order
        if not task.accesses:
            continue
        siblings = places[task.parent]
        earlier = {last[task.parent]: None} if task.parent in last else {}
        for address, kind in task.accesses:
            if kind == AFTER:
                if address:
                    earlier[address] = None
                continue
            if kind == EVERYTHING:
                for place in siblings.values():
                    earlier |= dict.fromkeys(place.readers or place.owners)
                siblings.clear()
                last[task.parent] = number
                continue
            earlier |= dict.fromkeys(siblings[address].enter(number, kind))
        earlier.pop(number, None)  # it names an address twice
        if earlier:
            result[number] = tuple(earlier)
    return result


def channels(histories):
    """Yields (source, target, tag, communicator) of each channel, the messages that were sent and
    those that were received. The n-th one that was sent is that of the n-th receive that began:
    messages of a channel cannot overtake each other."""
    result = collections.defaultdict(lambda: ([], []))
    for history in histories:
        rank = history.rank.rank
        for message in history.messages:
            ends = (rank, message.peer) if message.sent else (message.peer, rank)
            channel = (*ends, message.tag, message.communicator)
            result[channel][not message.sent].append(message)
    for channel, (sent, received) in result.items():
        yield channel, sent, received


def flights(histories):
    """All messages that arrived, by the time of their sends."""
    pairs = [Flight(source=source, target=target, sent=start.time,
                    received=max(end.time, start.time), bytes=start.bytes, tag=tag,
                    communicator=communicator, send_task=start.task, receive_task=end.task,
                    send_worker=start.worker, receive_worker=end.worker, arrival=end)
             for (source, target, tag, communicator), sent, received in channels(histories)
             for start, end in zip(sent, received)]
    pairs.sort(key=lambda flight: flight.sent)
    return pairs


def calls(histories):
    """(name, communicator, n) -> (rank, Collective) of all that took part: the n-th call of one
    name on one communicator is the same on all its ranks."""
    result = collections.defaultdict(list)
    for history in histories:
        count = collections.Counter()
        for one in history.collectives:
            key = (history.rank.names[one.name].name, one.communicator)
            result[(*key, count[key])].append((history.rank.rank, one))
            count[key] += 1
    return result


def meetings(histories):
    """(rank, Collective) -> the rank and the Collective that came last of all that took part."""
    last = {}
    for together in calls(histories).values():
        latest = max(together, key=lambda pair: pair[1].start)
        for rank, one in together:
            last[rank, id(one)] = latest
    return last


@dataclasses.dataclass
class RankIndex:
    """The data that a walk through one rank needs."""
    history: object
    before: dict  # task -> its predecessors
    parts: dict  # task -> its slices, in order
    ended: list  # (time, task) of tasks that have ended, by time
    starts: dict  # worker -> slices by start
    arrivals: dict  # task -> what it got from others (Flight or Collective), by time
    waits: dict  # task -> (start, end) of waits in place
    causes: dict  # id of a received Message, or of a Collective -> (time, Flight or Collective)

    def last_of(self, futures, until):
        """(time, Flight or Collective) of the last arrival that set one of the futures by then."""
        causes = [self.causes[id(arrival)] for future in futures
                  for arrival in future.all_arrivals() if id(arrival) in self.causes]
        return max((cause for cause in causes if cause[0] <= until),
                   key=lambda cause: cause[0], default=None)


def index(history, arrived):
    parts, starts = collections.defaultdict(list), collections.defaultdict(list)
    for one in history.slices:
        parts[one.task].append(one)
        starts[one.worker].append(one)
    for slices in parts.values():
        slices.sort(key=lambda one: one.part)
    for slices in starts.values():
        slices.sort(key=lambda one: one.start)
    waits = collections.defaultdict(list)
    for pieces in history.pieces.values():
        for piece in pieces:
            if piece.state is State.IDLE and piece.task:
                waits[piece.task].append((piece.start, piece.end))
    arrivals = collections.defaultdict(list)
    causes = {id(flight.arrival): (flight.received, flight) for flight in arrived}
    causes |= {id(one): (one.end, one) for one in history.collectives if one.end >= 0}
    for flight in arrived:
        arrivals[flight.receive_task].append((flight.received, flight))
    for one in history.collectives:
        if one.end >= 0:
            arrivals[one.task].append((one.end, one))
    for times in list(arrivals.values()) + list(waits.values()):
        times.sort(key=lambda pair: pair[0])
    ended = sorted((slices[-1].end, task) for task, slices in parts.items())
    return RankIndex(history, predecessors(history), parts, ended, starts, arrivals, waits, causes)


def united(spans):
    """The same moments as spans that do not overlap, in order."""
    result = []
    for start, end in sorted(spans):
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(result[-1][1], end))
        else:
            result.append((start, end))
    return result
