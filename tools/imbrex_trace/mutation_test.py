# SPDX-License-Identifier: BSD-3-Clause
"""mutation_test.py [SEED [COUNT]]: damaged traces, each through all commands that show a trace.

Methodology: a run of two ranks with records of every kind is written, then damaged: a field of its
head or of its records gets another value, bytes change, files are cut. Each
damaged trace is shown, or refused by a TraceError, quickly; otherwise its seed is printed.
"""
import contextlib
import copy
import io
import json
import pathlib
import random
import resource
import signal
import struct
import sys
import tempfile
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from imbrex_trace import (history, otf2_files, page, reader, report, summary,  # noqa: E402
                          timeline)
from imbrex_trace.synthetic import START, RankWriter  # noqa: E402

SECONDS_MAX, BYTES_MAX = 20, 4 << 30
FIELDS = ("<QQIIQQQ", 48)
STRANGE = (0, 1, 2, 3, 7, 15, 16, 2**31, 2**32 - 1, 2**32, 2**40, 2**63 - 1, 2**63, 2**64 - 1,
           START)
STRANGE_VALUES = (-1, 0, 1, 2, 10**6, 10**12, 2**70, 1.5, "", "x" * 300, "\0\ud800", None, True, [],
                  {}, [{}], START, START + 1)


def write_run(folder):
    """Heads and records of its ranks."""
    ranks = []
    for number in range(2):
        rank = RankWriter(folder, number, 2, workers=2)
        work, receive, sums = (rank.name(name) for name in ("work", "MPI_Recv", "MPI_Allreduce"))
        rank.create(0.5, 0, 7, work, priority=-3, accesses=((64, 1), (128, 2)))
        rank.create(0.6, 0, 8, work, accesses=((64, 0),))
        rank.begin(1, 0, 7, work, priority=2)
        rank.message(1.5, 0, 7, 1 - number, 5, task=7)
        rank.suspend(2, 0, 7, receive, waits_task=8)
        rank.idle(2.1, 2.9, 0)
        rank.begin(2.2, 1, 8, work)
        rank.message(2.4, 1, 8, 1 - number, 5, task=8)
        rank.collective(2.5, 2.8, 1, 8, sums)
        rank.add(2.85, 1, 12, 8, 64, 0)
        rank.datum(5, "tile")
        rank.copy(2.86, 0, 18, peer=1 - number, root=number, ticket=3, datum=5)
        rank.copy(2.9, 0, 19, peer=1 - number, root=1 - number, ticket=3, datum=5)
        rank.add(2.92, 1, 20, 8, 2, 1)
        rank.add(2.92, 1, 21, 8, work, 0, 4096)
        rank.add(2.93, 1, 22, 8, 1, 0, 8192)
        rank.add(2.93, 1, 23, 8, 0, 8193, 3)
        rank.add(2.94, 1, 24, 8, 64, 1 - number + (6 << 32), 4 << 32)
        rank.add(2.94, 1, 25, 8, sums, 8, 5 << 32)
        rank.add(2.95, 1, 26, 8, receive, 0, 4 << 32)
        rank.add(2.95, 1, 27, 8, 0, 0, 4 << 32)
        rank.add(2.96, 1, 28, 8, 0, 4096, 5 << 32)
        rank.add(2.97, 1, 29, 8)
        rank.add(2.98, 1, 30, 8)
        rank.add(2.99, 1, 31, 8, 1)
        rank.end(3, 1, 8)
        rank.add(3.1, 1, 11, 7, 5)
        rank.add(3.2, 1, 13, 7, 1)
        rank.resume(3.5, 0, 7)
        rank.end(4, 0, 7)
        ranks.append((rank.head, bytes(rank.data)))
    return ranks


def damage_head(head, draw):
    """One value of it, on any level, is another; or a key is missing."""
    places = [(head, key) for key in head]
    places += [(entry, key) for entry in head["names"] for key in entry]
    places += [(head["names"], position) for position in range(len(head["names"]))]
    place, key = draw.choice(places)
    if isinstance(place, dict) and draw.random() < 0.1:
        del place[key]
    else:
        place[key] = draw.choice(STRANGE_VALUES)


def damage_records(data, draw):
    layout, size = FIELDS
    records = [list(struct.unpack_from(layout, data, at)) for at in range(0, len(data), size)]
    for _ in range(draw.choice((1, 1, 2, 5))):
        record, field = draw.choice(records), draw.randrange(7)
        likely = draw.choice(records)[field]  # of another record
        value = draw.choice((*STRANGE, likely, likely, likely + 1, record[field] + 1))
        record[field] = value % (2**32 if field in (2, 3) else 2**64)
    if draw.random() < 0.3:
        draw.shuffle(records)
    if draw.random() < 0.2:
        del records[draw.randrange(len(records)):]
    return b"".join(struct.pack(layout, *record) for record in records)


def damage_bytes(data, draw):
    data = bytearray(data)
    for _ in range(draw.choice((1, 3, 30))):
        data[draw.randrange(len(data))] = draw.randrange(256)
    return bytes(data[:draw.randrange(len(data))] if draw.random() < 0.2 else data)


def write_damaged(folder, ranks, draw):
    for number, (head, data) in enumerate(ranks):
        head = copy.deepcopy(head)
        if draw.random() < 0.6:
            data = damage_records(data, draw)
            head["events"] = len(data) // FIELDS[1]
        if draw.random() < 0.2:
            head["cut"] = draw.choice(("signal 9", "", 3, None))
        if draw.random() < 0.3:
            damage_head(head, draw)
        text = json.dumps(head).encode()
        if draw.random() < 0.05:
            text = damage_bytes(text, draw)
        if draw.random() < 0.05:
            data = damage_bytes(data or b"\0", draw)
        (folder / f"rank-{number}.json").write_bytes(text)
        (folder / f"rank-{number}.events").write_bytes(data)


def show(folder):
    """All that the command can make of it, and True if it was not refused."""
    try:
        for write in (summary.lines, events_of,
                      lambda histories: timeline.lines([timeline.Panel("x", histories)], "title"),
                      lambda histories: report.lines([report.make("x", histories)]),
                      lambda histories: page.lines(cropped(histories))):
            ranks = reader.read_run(folder)
            reader.describe_gaps(ranks)
            for line in write([history.replay(rank) for rank in ranks]):
                line.encode("utf-8")
        return True
    except reader.TraceError as refused:
        str(refused).encode("utf-8", "backslashreplace")
        return False


def events_of(histories):
    """What report.otf2 would hold."""
    return (str(event) for one in histories for worker in one.pieces
            for event in otf2_files.events(one, worker))


def cropped(histories):
    history.crop_to_tasks(histories)
    return report.make("x", histories, cropped_to_tasks=True)


def too_long(*_):
    raise TimeoutError(f"more than {SECONDS_MAX} s")


def main(seed=1, count=400):
    resource.setrlimit(resource.RLIMIT_AS, (BYTES_MAX, BYTES_MAX))
    signal.signal(signal.SIGALRM, too_long)
    failures = shown = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        ranks = write_run(folder)
        for number in range(seed, seed + count):
            write_damaged(folder, ranks, random.Random(number))
            signal.alarm(SECONDS_MAX)
            try:
                with contextlib.redirect_stderr(io.StringIO()):
                    shown += show(folder)
            except Exception:
                failures += 1
                print(f"mutation_test.py {number} 1:\n{traceback.format_exc(limit=-4)}")
            signal.alarm(0)
    print(f"{count} damaged traces from seed {seed}: {shown} shown, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
