# SPDX-License-Identifier: BSD-3-Clause
"""The run as an OTF2 archive, for Vampir, Scalasca and others, by the Python module of that format.

A rank is a process, a worker a thread; tasks are regions, left at a suspension and entered again;
idle time is a region, too.
"""
import importlib
import os
import pathlib
import shutil
import site
import sys
import tempfile

from imbrex_trace.history import State
from imbrex_trace.reader import NO_WORKER

DEBIAN = "/usr/lib/python3/dist-packages"  # where another Python than the system's does not look
IDLE, END = -1, 1 << 62


def module():
    """The module, or None. tools/imbrex starts Python without the folders of modules that are not
    its own."""
    site.main()
    sys.path += filter(None, os.environ.get("PYTHONPATH", "").split(":"))
    for path in (None, DEBIAN):
        if path is not None:
            sys.path.append(path)
        try:
            return importlib.import_module("otf2")
        except ImportError:
            pass
        finally:
            if path is not None:
                sys.path.remove(path)
    return None


def write(report, folder):
    """A line that says what was done. The archive appears as a whole or not at all."""
    library = module()
    if library is None:
        return ("left out: OTF2: the Python module otf2 is not there (Debian: python3-otf2; "
                "tools/install_dependencies --report)")
    folder = pathlib.Path(folder)
    part = pathlib.Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        archive = part / "archive"
        with library.writer.open(str(archive), timer_resolution=10**9) as trace:
            Archive(library, trace, report).write()
        shutil.rmtree(folder, ignore_errors=True)
        archive.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return f"written: {folder / 'traces.otf2'}"


class Archive:
    def __init__(self, library, trace, report):
        self.trace, self.report = trace, report
        # The start of the whole trace: a crop takes away no tasks.
        self.start = min(history.rank.start for history in report.histories)
        make, enums = trace.definitions, library.enums
        node = make.system_tree_node("node")
        self.idle = make.region("idle", paradigm=enums.Paradigm.USER,
                                region_role=enums.RegionRole.IMPLICIT_BARRIER)
        self.regions, self.writers, firsts = {}, {}, []
        for history in report.histories:
            rank = history.rank.rank
            group = make.location_group(
                f"rank {rank}", system_tree_parent=node,
                location_group_type=enums.LocationGroupType.PROCESS)
            for position, name in enumerate(history.rank.names):
                self.regions[rank, position] = make.region(
                    name.name, source_file=name.where.rpartition(":")[0],
                    begin_line_number=int(name.where.rpartition(":")[2] or 0),
                    paradigm=enums.Paradigm.USER, region_role=enums.RegionRole.TASK)
            for worker in sorted(history.pieces):
                location = make.location(f"worker {worker}", group=group)
                if worker == 0:
                    firsts.append(location)
                self.writers[rank, worker] = trace.event_writer_from_location(location)
        make.group("world", members=firsts, group_type=enums.GroupType.COMM_LOCATIONS,
                   paradigm=enums.Paradigm.MPI)
        members = make.group("ranks", members=list(range(len(firsts))),
                             group_type=enums.GroupType.COMM_GROUP, paradigm=enums.Paradigm.MPI)
        self.communicator = make.comm("world", group=members)

    def write(self):
        for history in self.report.histories:
            for worker in sorted(history.pieces):
                self.write_worker(history, worker)

    def write_worker(self, history, worker):
        rank = history.rank.rank
        writer = self.writers[rank, worker]
        for time, what, which in events(history, worker):
            time -= self.start
            if what == "message":
                say = writer.mpi_send if which.sent else writer.mpi_recv
                say(time, which.peer, self.communicator, which.tag % 2**32, which.bytes)
                continue
            region = self.idle if which == IDLE else self.regions[rank, which]
            (writer.enter if what == "enter" else writer.leave)(time, region)


def events(history, worker):
    """(time, "enter" or "leave" or "message", name, IDLE or Message), in order, nested."""
    spans = [(one.start, one.end, history.tasks[one.task].name) for one in history.slices
             if one.worker == worker]
    spans += [(piece.start, piece.end, IDLE) for piece in history.pieces[worker]
              if piece.state is State.IDLE]
    spans.sort(key=lambda span: (span[0], -span[1]))
    messages = iter(sorted((one for one in history.messages
                            if (0 if one.worker == NO_WORKER else one.worker) == worker),
                           key=lambda one: one.time))
    message = next(messages, None)
    stack = []  # (end, name) of what the worker stands in
    for start, end, name in [*spans, (END, END, IDLE)]:
        while stack or message:
            leaves = stack[-1][0] if stack else END
            if message and message.time <= min(start, leaves):
                yield message.time, "message", message
                message = next(messages, None)
            elif leaves <= start:
                yield leaves, "leave", stack.pop()[1]
            else:
                break
        if start < END:
            stack.append((min([end, *(outer for outer, _ in stack)]), name))
            yield start, "enter", name
