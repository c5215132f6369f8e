# SPDX-License-Identifier: BSD-3-Clause
"""All ranks in one JSON file in Chrome's trace format, for ui.perfetto.dev or chrome://tracing.

A rank is a process, a worker a thread. Tasks are slices, cut where the task was suspended; arrows
lead from a suspension to the resume, and from a message's send to its receive.
"""
import bisect
import collections
import itertools
import json

from imbrex_trace.history import State
from imbrex_trace.reader import NO_WORKER

EXTERNAL_ROW = 1_000_000  # of messages of threads that are no workers


def lines(histories):
    """The file, in parts; an event a line, so that it can be looked at without a viewer."""
    origin = min(history.rank.start for history in histories)  # a crop takes away no tasks
    arrows = itertools.count(1)
    yield '{"displayTimeUnit":"ns","traceEvents":[\n'
    separator = ""
    for event in itertools.chain(
            *(rank_events(history, origin, arrows) for history in histories),
            message_arrows(histories, origin, arrows)):
        yield separator + json.dumps(event, separators=(",", ":"))
        separator = ",\n"
    yield "\n]}\n"


def rank_events(history, origin, arrows):
    rank = history.rank.rank
    yield from row_names(history)
    for task_slice in history.slices:
        yield slice_event(history, task_slice, origin)
    for worker, pieces in history.pieces.items():
        for piece in pieces:
            if piece.state is State.IDLE:
                yield {"ph": "X", "cat": "idle", "name": "idle", "pid": rank, "tid": worker,
                       "ts": micro(piece.start - origin), "dur": micro(piece.end - piece.start)}
    yield from suspension_arrows(history, origin, arrows)


def row_names(history):
    rank = history.rank
    process = {"ph": "M", "pid": rank.rank}
    yield process | {"name": "process_name",
                     "args": {"name": f"rank {rank.rank} ({rank.host}, {rank.policy})"}}
    yield process | {"name": "process_sort_index", "args": {"sort_index": rank.rank}}
    rows = [(worker, f"worker {worker}") for worker in sorted(history.pieces)]
    if any(message.worker == NO_WORKER for message in history.messages):
        rows.append((EXTERNAL_ROW, "other threads"))
    for row, name in rows:
        yield process | {"name": "thread_name", "tid": row, "args": {"name": name}}
        yield process | {"name": "thread_sort_index", "tid": row, "args": {"sort_index": row}}


def slice_event(history, task_slice, origin):
    task = history.tasks[task_slice.task]
    name = history.rank.names[task.name]
    arguments = {"task": task_slice.task, "parent": task.parent, "priority": task.priority,
                 "from": name.where}
    if task.parts > 1:
        arguments["part"] = f"{task_slice.part} of {task.parts}"
    if task_slice.waits_for >= 0:
        arguments["then waits for"] = history.rank.names[task_slice.waits_for].name
    return {"ph": "X", "cat": "task", "name": name.name, "pid": history.rank.rank,
            "tid": task_slice.worker, "ts": micro(task_slice.start - origin),
            "dur": micro(task_slice.end - task_slice.start), "args": arguments}


def suspension_arrows(history, origin, arrows):
    parts = collections.defaultdict(list)
    for task_slice in history.slices:
        if history.tasks[task_slice.task].parts > 1:
            parts[task_slice.task].append(task_slice)
    for task, slices in parts.items():
        slices.sort(key=lambda one: one.part)
        for before, after in zip(slices, slices[1:]):
            if after.part != before.part + 1:
                continue
            # An arrow starts inside a slice: at its last nanosecond, not at its end.
            yield from arrow("suspended", "suspension", next(arrows),
                             (history.rank.rank, before.worker,
                              max(before.start, before.end - 1) - origin),
                             (history.rank.rank, after.worker, after.start - origin))


def message_arrows(histories, origin, arrows):
    """The n-th message from s to r with one tag on one communicator is the n-th received there."""
    sent, received = collections.defaultdict(list), collections.defaultdict(list)
    for history in histories:
        rank = history.rank.rank
        cover = Cover(history)
        for message in history.messages:
            ends = (rank, message.peer) if message.sent else (message.peer, rank)
            place = (rank, EXTERNAL_ROW if message.worker == NO_WORKER else message.worker,
                     message.time - origin)
            queue = sent if message.sent else received
            queue[(*ends, message.tag, message.communicator)].append(place)
            yield message_event(message, place, cover)
    for key in sorted(sent):
        for start, end in zip(sent[key], received.get(key, ())):
            yield from arrow("message", "message", next(arrows), start, end)


class Cover:
    """Answers whether a worker is in a task at some time."""

    def __init__(self, history):
        self.slices = collections.defaultdict(list)
        for task_slice in history.slices:
            self.slices[task_slice.worker].append((task_slice.start, task_slice.end))
        self.starts, self.ends = {}, {}
        for worker, spans in self.slices.items():
            spans.sort()
            self.starts[worker] = [span[0] for span in spans]
            self.ends[worker] = list(itertools.accumulate((span[1] for span in spans), max))

    def covers(self, worker, time):
        if worker not in self.starts:
            return False
        position = bisect.bisect_right(self.starts[worker], time) - 1
        return position >= 0 and self.ends[worker][position] > time


def message_event(message, place, cover):
    """A mark in a task. Outside, a slice of one microsecond: arrows need one to hold on to."""
    verb, direction = ("send", "to") if message.sent else ("receive", "from")
    event = {"cat": "message", "pid": place[0], "tid": place[1], "ts": micro(place[2]),
             "name": f"{verb} {message.bytes} B {direction} {message.peer}",
             "args": {"peer": message.peer, "tag": message.tag, "bytes": message.bytes,
                      "communicator": message.communicator}}
    if cover.covers(message.worker, message.time):
        return event | {"ph": "i", "s": "t"}
    return event | {"ph": "X", "dur": 1}


def arrow(name, category, number, start, end):
    for phase, (rank, row, time) in (("s", start), ("f", end)):
        event = {"ph": phase, "cat": category, "name": name, "id": number, "pid": rank,
                 "tid": row, "ts": micro(time)}
        yield event | {"bp": "e"} if phase == "f" else event


def micro(nanoseconds):
    return nanoseconds / 1000
