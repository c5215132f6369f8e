# SPDX-License-Identifier: BSD-3-Clause
"""Methodology: small runs of which every number can be told by hand go through `imbrex report`; the
tests look at its tables, at what it writes, and at what it says of traces that are not whole."""
import base64
import gzip
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOOLS))
from imbrex_trace import (  # noqa: E402
    blame, copies, graph, history, otf2_files, page, reader, words)
from imbrex_trace.synthetic import ROOT, RankWriter  # noqa: E402

SENT, RECEIVED = 7, 8
IN, OUT, INOUT, MUTEX_SET, SET, AFTER, EVERYTHING = range(7)


def run(*arguments, **environment):
    return subprocess.run([sys.executable, "-B", str(TOOLS / "imbrex"), *map(str, arguments)],
                          capture_output=True, text=True, check=False,
                          env=os.environ | environment)


def has_d3():
    return any(pathlib.Path(place).is_file() for place in page.D3_PLACES)


class ReportTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.directory = pathlib.Path(folder.name) / "trace"
        self.directory.mkdir()

    def writer(self, **arguments):
        return RankWriter(self.directory, **arguments)

    def two_ranks(self):
        """Rank 0: "long" 0 to 4, then "send" 4 to 5, which sends at 4.5. Rank 1: "receive", made
        and begun at 0, waits for it until 6, ends at 7; "after", which follows it, 7 to 9."""
        zero, one = self.writer(rank=0, ranks=2), self.writer(rank=1, ranks=2)
        long, send = zero.name("long", "l.cpp:1"), zero.name("send", "s.cpp:2")
        zero.create(0, 0, 1, long, accesses=((8, OUT),))
        zero.create(0, 0, 2, send, accesses=((8, IN),))
        zero.begin(0, 0, 1, long)
        zero.end(4, 0, 1)
        zero.begin(4, 0, 2, send)
        zero.message(4.5, 0, SENT, peer=1, tag=7, size=100, task=2)
        zero.end(5, 0, 2)
        zero.idle(5, 10, 0)
        receive, after = one.name("receive", "r.cpp:3"), one.name("after", "a.cpp:4")
        wait = one.name("MPI_Recv", "")
        one.create(0, 0, 1, receive, accesses=((8, OUT),))
        one.create(0, 0, 2, after, accesses=((8, INOUT),))
        one.begin(0, 0, 1, receive)
        one.suspend(1, 0, 1, wait)
        one.idle(1, 6, 0)
        one.resume(6, 0, 1)
        one.message(6, 0, RECEIVED, peer=0, tag=7, size=100, task=1)
        one.end(7, 0, 1)
        one.begin(7, 0, 2, after)
        one.end(9, 0, 2)
        zero.write(), one.write()

    def verdict(self):
        """The sentences, and all of the text."""
        text = self.report("--write", "none")
        parts = text.split("\n\n")
        return " ".join(parts[1].split()), text

    def chain(self, rank, worker, begin, end, name, count=1, first=1, accesses=()):
        """Tasks one after the other on a worker, all made at the start."""
        step = (end - begin) / count
        for number in range(count):
            rank.create(0, worker, first + number, name, accesses=accesses)
        for number in range(count):
            rank.begin(begin + number * step, worker, first + number, name)
            rank.end(begin + (number + 1) * step, worker, first + number)

    def report(self, *arguments, whole=True, **environment):
        arguments += ("--whole",) if whole and "--crop" not in arguments else ()
        result = run("report", self.directory, *arguments, **environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def table(self, title, text=None):
        """Rows of cells, the first is the head."""
        lines = (text or self.report("--write", "none")).splitlines()
        start = next(i for i, line in enumerate(lines) if line.startswith(title))
        rows = []
        for line in lines[start + 1:]:
            if not line or line.startswith("(") and rows and "  " not in line:  # the note
                break
            rows.append(re.split(r"  +", line.strip()))
        return rows


class Graph(ReportTest):
    def edges(self, *tasks):
        """Of tasks 1, 2, ... that one parent makes with these accesses."""
        rank = self.writer()
        name = rank.name("t")
        for number, accesses in enumerate(tasks, 1):
            rank.create(number, 0, number, name, accesses=accesses)
        rank.write()
        return graph.predecessors(history.replay(reader.read_run(self.directory)[0]))

    def test_readers_follow_the_writer_and_the_next_writer_follows_all_readers(self):
        self.assertEqual(self.edges([(1, OUT)], [(1, IN)], [(1, IN)], [(1, INOUT)]),
                         {2: (1,), 3: (1,), 4: (2, 3)})

    def test_sets_run_together_and_are_followed_together(self):
        self.assertEqual(self.edges([(1, OUT)], [(1, SET)], [(1, SET)], [(1, MUTEX_SET)],
                                    [(1, MUTEX_SET)], [(1, IN)]),
                         {2: (1,), 3: (1,), 4: (2, 3), 5: (2, 3), 6: (4, 5)})

    def test_an_access_to_everything_follows_all_before_and_is_followed_by_all_after(self):
        self.assertEqual(self.edges([(1, OUT)], [(1, IN)], [(2, OUT)], [(0, EVERYTHING)],
                                    [(1, IN)], [(3, OUT)], [(0, EVERYTHING)]),
                         {2: (1,), 4: (2, 3), 5: (4,), 6: (4,), 7: (4, 5, 6)})

    def test_a_future_is_followed_and_one_that_is_no_task_is_not(self):
        self.assertEqual(self.edges([(1, OUT)], [(1, AFTER), (0, AFTER)]), {2: (1,)})

    def test_an_address_means_something_among_the_children_of_one_parent_only(self):
        rank = self.writer()
        name = rank.name("t")
        rank.create(1, 0, 1, name, accesses=[(1, OUT)])
        rank.create(2, 0, 2, name, parent=1, accesses=[(1, OUT)])
        rank.write()
        self.assertEqual(
            graph.predecessors(history.replay(reader.read_run(self.directory)[0])), {})


class Tables(ReportTest):
    def test_time_is_divided_and_what_was_hidden_is_told(self):
        self.two_ranks()
        rows = self.table("Time of the workers")
        self.assertEqual(rows[1], ["0", "5 ms", "50", "5 ms", "50", "0", "0", "-"])
        # A message is in flight from 4.5 to 6, and the worker is idle all that time.
        self.assertEqual(rows[2], ["1", "4 ms", "40", "5 ms", "50", "1 ms", "10", "0"])

    def test_the_critical_path_crosses_ranks_by_the_message(self):
        self.two_ranks()
        text = self.report("--write", "none")
        self.assertIn("Critical path: 9 ms, through 2 of 2 ranks", text)
        rows = {row[0]: row[1:] for row in self.table("Critical path", text)}
        self.assertEqual(rows["long"], ["1", "4 ms", "44"])
        self.assertEqual(rows["send"], ["1", "500 us", "5.6"])
        self.assertEqual(rows["(messages in flight)"], ["1", "1.5 ms", "17"])
        self.assertEqual(rows["receive"], ["1", "1 ms", "11"])
        self.assertEqual(rows["after"], ["1", "2 ms", "22"])

    def test_idle_time_is_blamed_on_the_peer_and_on_the_task_that_ran_there(self):
        self.two_ranks()
        text = self.report("--write", "none")
        self.assertEqual(self.table("Idle time by the rank", text)[1:],
                         [["0", "0", "0", "5 ms"],
                          ["1", "5 ms", "0", "0"]])
        worst = self.table("The tasks that delayed", text)
        # The path takes 5 ms: "long" ran for 3, "send" for 0.5, the rest was the message.
        self.assertEqual(worst[1], ["long", "0", "1", "4 ms", "3 ms", "l.cpp:1"])
        self.assertEqual(worst[2], ["send", "0", "2", "1 ms", "500 us", "s.cpp:2"])
        self.assertEqual(len(worst), 3)

    def test_the_task_that_ran_instead_is_blamed_while_a_ready_task_waits(self):
        zero, one = self.writer(rank=0, ranks=2), self.writer(rank=1, ranks=2)
        send, other = zero.name("send"), zero.name("other")
        zero.create(0, 0, 1, send)
        zero.begin(0, 0, 2, other)
        zero.end(6, 0, 2)
        zero.begin(6, 0, 1, send)
        zero.message(7, 0, SENT, peer=1, tag=1, task=1)
        zero.end(7, 0, 1)
        receive, wait = one.name("receive"), one.name("MPI_Recv", "")
        one.begin(0, 0, 1, receive)
        one.suspend(1, 0, 1, wait)
        one.idle(1, 7, 0)
        one.resume(7, 0, 1)
        one.message(7, 0, RECEIVED, peer=0, tag=1, task=1)
        one.end(10, 0, 1)
        zero.write(), one.write()
        text = self.report("--write", "none")
        worst = self.table("The tasks that delayed", text)
        self.assertEqual([(row[0], row[4]) for row in worst[1:3]],
                         [("other", "5 ms"), ("send", "1 ms")])
        rows = {row[0]: row[1:] for row in self.table("Critical path", text)}
        self.assertEqual(rows["(ready, but no worker was free)"][1], "6 ms")

    def test_a_collective_waits_for_the_rank_that_comes_last(self):
        for number, begin in ((0, 6), (1, 1)):
            rank = self.writer(rank=number, ranks=2)
            work, reduce = rank.name(f"work {number}"), rank.name("MPI_Allreduce", "")
            rank.begin(0, 0, 1, work)
            rank.collective(begin, 7, 0, 1, reduce)
            rank.idle(begin, 7, 0)
            rank.end(10 - number, 0, 1)
            rank.write()
        text = self.report("--write", "none")
        self.assertEqual(self.table("The tasks that delayed", text)[1][:2], ["work 0", "0"])
        self.assertEqual(self.table("Idle time by the rank", text)[2][1], "6 ms")

    def test_the_matrix_counts_messages_and_bytes(self):
        self.two_ranks()
        text = self.report("--write", "none")
        self.assertEqual(self.table("Messages from", text)[1:],
                         [["0", "0", "1", "1"], ["1", "0", "0", "0"]])
        self.assertEqual(self.table("Bytes from", text)[1], ["0", "0 B", "100 B", "100 B"])

    def test_a_share_has_no_minus_before_a_zero(self):
        self.assertEqual([words.percent(part, 1000) for part in (-1, 0, 0.1, 1, 994, 1000)],
                         ["0", "0", "<0.1", "0.1", "99", "100"])

    def test_several_runs_one_after_the_other(self):
        self.two_ranks()
        result = run("report", "--write", "none", self.directory, self.directory)
        self.assertEqual(result.stdout.count("Critical path"), 2)


class Verdict(ReportTest):
    """Of each run the reason for its length is known, since it was made for that."""

    def test_waiting_for_a_worker_that_runs_others(self):
        rank = self.writer(end=20)
        update, panel = rank.name("update"), rank.name("panel")
        rank.create(0, 0, 100, panel)
        self.chain(rank, 0, 0, 16, update, 4)
        rank.begin(16, 0, 100, panel)
        rank.end(20, 0, 100)
        rank.write()
        said, text = self.verdict()
        self.assertEqual(said, "80 % of the critical path waited for a free worker, which ran "
                               "`update`: more processors or less work in `update` would shorten "
                               "the run.")
        self.assertEqual(self.table("What the workers ran", text)[1:],
                         [["update", "16 ms", "0", "100"]])

    def test_waiting_for_a_worker_that_runs_many_short_tasks(self):
        rank = self.writer(end=20)
        update, panel = rank.name("update"), rank.name("panel")
        rank.create(0, 0, 10000, panel)
        self.chain(rank, 0, 0, 16, update, 2000)
        rank.begin(16, 0, 10000, panel)
        rank.end(20, 0, 10000)
        rank.head["processors"] = [0, 1, 2]
        rank.write()
        self.assertTrue(self.verdict()[0].endswith(
            "ran `update`: fewer, larger tasks or more workers."))

    def test_a_task_that_waits_behind_others_while_workers_are_idle_later(self):
        rank = self.writer(end=20, workers=2)
        update, panel, after = rank.name("update"), rank.name("panel"), rank.name("after")
        rank.create(0, 0, 100, panel, accesses=((8, OUT),))
        rank.create(0, 0, 101, after, accesses=((8, IN),))
        self.chain(rank, 0, 0, 10, update, 10)
        self.chain(rank, 1, 0, 10, update, 10, first=50)
        rank.begin(10, 0, 100, panel)
        rank.end(15, 0, 100)
        rank.begin(15, 0, 101, after)
        rank.end(20, 0, 101)
        rank.idle(10, 20, 1)
        rank.write()
        said = self.verdict()[0]
        self.assertIn("50 % of the critical path waited for a free worker, which ran `update`: as "
                      "workers were idle at other times, give `panel`, which waited, a higher "
                      "priority, or divide `update`.", said)

    def test_communication(self):
        zero, one = self.writer(rank=0, ranks=2), self.writer(rank=1, ranks=2)
        send = zero.name("send")
        zero.create(0, 0, 1, send)
        zero.begin(0, 0, 1, send)
        zero.message(1, 0, SENT, peer=1, tag=7, size=4_000_000, task=1)
        zero.end(2, 0, 1)
        zero.idle(2, 10, 0)
        receive, wait = one.name("receive"), one.name("MPI_Recv", "")
        one.create(0, 0, 1, receive)
        one.begin(0, 0, 1, receive)
        one.suspend(0.1, 0, 1, wait)
        one.idle(0.1, 9, 0)
        one.resume(9, 0, 1)
        one.message(9, 0, RECEIVED, peer=0, tag=7, size=4_000_000, task=1)
        one.end(10, 0, 1)
        zero.write(), one.write()
        self.assertEqual(self.verdict()[0],
                         "80 % of the critical path waited for 1 message of 4 MB from rank 0 to "
                         "rank 1, with nothing else to run: send earlier, send less, or have other "
                         "tasks meanwhile.")

    def test_communication_behind_computing_is_not_lost(self):
        zero, one = self.writer(rank=0, ranks=2), self.writer(rank=1, ranks=2)
        send, other = zero.name("send"), one.name("other")
        zero.create(0, 0, 1, send)
        zero.begin(0, 0, 1, send)
        zero.message(1, 0, SENT, peer=1, tag=7, task=1)
        zero.end(2, 0, 1)
        receive, wait = one.name("receive"), one.name("MPI_Recv", "")
        one.create(0, 0, 1, receive)
        one.begin(0, 0, 1, receive)
        one.suspend(0.1, 0, 1, wait)
        self.chain(one, 0, 0.1, 9, other, first=2)
        one.resume(9, 0, 1)
        one.message(9, 0, RECEIVED, peer=0, tag=7, task=1)
        one.end(10, 0, 1)
        zero.write(), one.write()
        said, text = self.verdict()
        self.assertNotIn("nothing else to run", said)
        self.assertIn("(messages in flight, no worker idle)", text)

    def test_a_collective(self):
        for number in (0, 1):
            rank = self.writer(rank=number, ranks=2)
            work, reduce = rank.name("work"), rank.name("MPI_Allreduce", "")
            rank.create(0, 0, 1, work)
            rank.begin(0, 0, 1, work)
            rank.collective(2, 8, 0, 1, reduce)
            rank.idle(2, 8, 0)
            rank.end(10, 0, 1)
            rank.write()
        self.assertIn("60 % of the critical path waited for `MPI_Allreduce`, with nothing else",
                      self.verdict()[0])

    def test_one_long_task(self):
        rank = self.writer(end=20, workers=2)
        work, long = rank.name("work"), rank.name("long", "l.cpp:9")
        rank.create(0, 0, 100, long)
        rank.begin(0, 0, 100, long)
        rank.end(20, 0, 100)
        self.chain(rank, 1, 0, 4, work, 4)
        rank.idle(4, 20, 1)
        rank.write()
        self.assertEqual(self.verdict()[0],
                         "A single task, `long` (l.cpp:9), is 100 % of the critical path, and "
                         "workers were idle for 40 % of their time: divide it, or start it "
                         "earlier.")

    def test_imbalance(self):
        for number, load in ((0, 4), (1, 16)):
            rank = self.writer(rank=number, ranks=2, end=20)
            work, wait = rank.name("work"), rank.name("MPI_Barrier", "")
            self.chain(rank, 0, 0, load, work, 16, accesses=((8, INOUT),))
            meet = rank.name("meet")
            rank.create(0, 0, 50, meet, accesses=((8, IN),))
            rank.begin(load, 0, 50, meet)
            rank.collective(load, 16.2, 0, 50, wait)
            if load < 16:
                rank.idle(load, 16.2, 0)
            rank.end(17, 0, 50)
            rank.write()
        said = self.verdict()[0]
        self.assertRegex(said, r"Workers of other ranks were idle for \d+(\.\d)? ms, 3\d % of all "
                               r"workers' time, until rank 1 had run `work`: it is in tasks for "
                               r"1\d ms, the other ranks for 4\.\d ms on average\.")

    def test_too_few_tasks_at_a_time(self):
        rank = self.writer(end=20, workers=4)
        step = rank.name("step")
        for number in range(10):
            rank.create(0, 0, number + 1, step, accesses=((8, INOUT),))
            rank.begin(number * 2, 0, number + 1, step)
            rank.end(number * 2 + 2, 0, number + 1)
        for worker in (1, 2, 3):
            rank.idle(0, 20, worker)
        rank.write()
        self.assertEqual(self.verdict()[0],
                         "100 % of the critical path is computing, most of it in `step`, but "
                         "workers were idle for 75 % of their time: too few tasks could run at a "
                         "time.")

    def test_main_computes_alone(self):
        rank = self.writer(end=20, workers=2, main_runs=True)
        work = rank.name("work")
        self.chain(rank, 1, 0, 2, work)
        rank.idle(2, 20, 1)
        rank.write()
        self.assertEqual(self.verdict()[0],
                         "100 % of the critical path is the code of `main`, and the other workers "
                         "were idle for 90 % of that: make tasks of it.")

    def test_tasks_too_short_to_be_handed_on(self):
        rank = self.writer(end=20, workers=2)
        step = rank.name("step")
        for number in range(1000):
            rank.create(0, 0, number + 1, step, accesses=((8, INOUT),))
            rank.begin(number * 0.02 + 0.01, number % 2, number + 1, step)
            rank.end(number * 0.02 + 0.02, number % 2, number + 1)
            rank.idle(number * 0.02 + 0.02, number * 0.02 + 0.05, number % 2)
        rank.write()
        self.assertIn("% of the critical path the next task was ready and a worker idle (999 "
                      "times, 10 us on average): fewer, larger tasks would be handed on less "
                      "often.", self.verdict()[0])

    def test_short_tasks_and_much_overhead(self):
        rank = self.writer(end=20)
        work = rank.name("work")
        for number in range(1000):
            rank.create(0, 0, number + 1, work)
            rank.begin(number * 0.02 + 0.012, 0, number + 1, work)
            rank.end(number * 0.02 + 0.02, 0, number + 1)
        rank.write()
        self.assertIn("60 % of the workers' time was spent between tasks, 12 us for each, where a "
                      "task takes 8 us on average: fewer, larger tasks.", self.verdict()[0])

    def test_more_workers_than_processors(self):
        rank = self.writer(end=20, workers=4)
        work = rank.name("work")
        for worker in range(4):
            self.chain(rank, worker, 0, 10, work, first=worker + 1)
        rank.head["processors"] = [0, 3]
        rank.write()
        self.assertIn("4 workers shared 2 processors and were neither in tasks nor idle for 50 % "
                      "of their time", self.verdict()[0])

    def test_nothing_stands_out(self):
        rank = self.writer(end=20)
        rank.create(0, 0, 1, rank.name("gemm"))
        rank.begin(0, 0, 1, 1)
        rank.end(20, 0, 1)
        rank.write()
        self.assertEqual(self.verdict()[0],
                         "Nothing stands out: 100 % of the critical path is computing in `gemm`.")

    def test_an_empty_run(self):
        self.writer(end=20).write()
        self.assertEqual(self.verdict()[0], "Nothing ran in the recorded time.")

    def test_a_run_that_is_too_short(self):
        rank = self.writer(end=2)
        self.chain(rank, 0, 0, 1, rank.name("work"))
        rank.write()
        self.assertEqual(self.verdict()[0], "The run is too short to judge: 2 ms.")

    def test_a_long_name_is_cut_in_a_sentence(self):
        rank = self.writer(end=20)
        rank.create(0, 0, 1, rank.name("g" * 300))
        rank.begin(0, 0, 1, 1)
        rank.end(20, 0, 1)
        rank.write()
        self.assertIn("`" + "g" * 57 + "...`", self.verdict()[0])


class Parts(ReportTest):
    """The parts of a run that the report covers."""

    def phases(self, *phases, end=100):
        """Tasks (begin, end) of one worker; main waits outside."""
        rank = self.writer(end=end)
        for number, (begin, end_) in enumerate(phases, 1):
            rank.begin(begin, 0, number, rank.name(f"t{number}"))
            rank.end(end_, 0, number)
        rank.write()
        return self.report("--write", "none", whole=False)

    def test_time_before_the_first_task_and_after_the_last_is_left_out(self):
        self.assertIn("\n60 ms of 100 ms, between the first task and the last: without 20 ms "
                      "before and 20 ms after (--whole: all)\n", self.phases((20, 40), (40, 80)))
        self.assertNotIn("of 100 ms", self.report("--write", "none"))

    def test_a_few_tasks_of_set_up_are_left_out_with_it(self):
        self.assertIn("\n40 ms of 100 ms, ", self.phases((1, 2), (20, 60), (90, 91)))
        self.assertIn("\n90 ms of 100 ms, ", self.phases((1, 11), (20, 60), (81, 91)))

    def test_where_tasks_are_little_of_the_run_all_is_shown(self):
        self.assertNotIn("of 100 ms", self.phases((50, 55)))

    def test_most_of_a_run_that_is_left_out_is_told(self):
        text = self.phases((50, 80))
        self.assertIn("70 % of the run lay before the first task and after the last one; the "
                      "report covers the 30 ms between.", " ".join(text.split()))

    def test_the_title_says_what_run_it_is(self):
        self.two_ranks()
        text = self.report("--write", "none", TZ="UTC")
        self.assertIn("trace: solve, 2 ranks on node1, 2023-11-14 22:13 UTC\n", text)
        self.assertIn("\n1 worker each, policy stealing, 4 tasks, 1 message, 10 ms\n", text)

    def test_an_older_trace_has_no_program(self):
        rank = self.writer()
        del rank.head["command"]
        rank.write()
        self.assertIn(f"{self.directory}: {self.directory}, 1 rank on node1",
                      self.report("--write", "none"))


class DataWithOwners(ReportTest):
    def three_ranks(self):
        """Rank 0 sends "tile" to 1, which passes it on to 2; and "row" to 1, which never comes."""
        ranks = [self.writer(rank=number, ranks=3) for number in range(3)]
        for rank in ranks:
            rank.datum(5, "tile")
            rank.datum(6, "row")
        ranks[0].copy(1, 0, 18, peer=1, root=0, ticket=0, datum=5, size=1000)
        ranks[1].copy(3, 0, 19, peer=0, root=0, ticket=0, datum=5, size=1000)
        ranks[1].copy(4, 0, 18, peer=2, root=0, ticket=0, datum=5, size=1000)
        ranks[2].copy(8, 0, 19, peer=0, root=0, ticket=0, datum=5, size=1000)
        ranks[0].copy(9, 0, 18, peer=1, root=0, ticket=1, datum=6, size=10)
        for rank in ranks:
            rank.write()

    def test_each_copy_is_found_with_who_sent_it(self):
        self.three_ranks()
        histories = [history.replay(rank) for rank in reader.read_run(self.directory)]
        found = [(hop.datum, hop.source, hop.target, hop.is_relayed,
                  (hop.arrived - hop.sent) // 1_000_000 if hop.arrived >= 0 else None)
                 for hop in copies.hops(histories)]
        self.assertEqual(found, [("tile", 0, 1, False, 2), ("tile", 1, 2, True, 4),
                                 ("row", 0, 1, False, None)])

    def test_the_report_says_what_travelled_and_how_often_a_relay_sent_it(self):
        self.three_ranks()
        self.assertEqual(self.table("Data sent between ranks: 3 copies, 1 of them passed on by"),
                         [["datum", "copies", "by relays", "bytes", "median", "longest"],
                          ["tile", "2", "1", "2 kB", "4 ms", "4 ms"],
                          ["row", "1", "0", "10 B", "-", "-"]])

    def test_a_run_without_such_data_says_nothing_of_them(self):
        self.two_ranks()
        self.assertNotIn("Data sent between ranks", self.report("--write", "none"))


class Incomplete(ReportTest):
    def test_a_run_that_was_cut_is_reported_as_far_as_it_goes(self):
        self.two_ranks()
        head = self.directory / "rank-1.json"
        fields = json.loads(head.read_text())
        head.write_text(json.dumps(fields | {"cut": "signal 15 (Terminated)"}))
        (self.directory / "rank-0.json").unlink()
        for command in ("report", "summary"):
            result = run(command, self.directory)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("the trace is incomplete: rank 1 ended by signal 15 (Terminated); there "
                          "is no file of rank 0", result.stderr)
            self.assertIn("receive", result.stdout)
        self.assertIn("\nthe trace is incomplete: ", run("report", self.directory).stdout)

    def test_records_that_do_not_fit_are_passed_over_where_a_run_was_cut(self):
        rank = self.writer(workers=2)
        name = rank.name("work")
        rank.begin(0, 0, 1, name)
        rank.resume(2, 1, 7)  # its begin and its suspension are not there
        rank.end(3, 1, 7)
        rank.end(4, 0, 1)
        rank.write()
        self.assertEqual(run("report", self.directory).returncode, 1)
        rank.head["cut"] = "signal 6 (Aborted)"
        rank.write()
        self.assertIn("work", self.report("--write", "page" if has_d3() else "none"))

    def test_a_path_does_not_go_in_circles_where_a_trace_contradicts_itself(self):
        rank = self.writer()
        work = rank.name("work")
        rank.begin(1, 0, 7, work)
        rank.suspend(2, 0, 7, rank.name("get"), waits_task=7)  # for itself
        rank.resume(3, 0, 7)
        rank.end(4, 0, 7)
        rank.write()
        histories = [history.replay(rank) for rank in reader.read_run(self.directory)]
        whole = blame.Run(histories)
        last = max(histories[0].slices, key=lambda one: one.start)
        self.assertLess(sum(1 for _ in whole.walk(0, last, last.end, whole.start)), 10)

    def part_that_arrives(self, waits):
        """Rank 1 has begun a collective at 0, of which rank 0 sends a part of 100 bytes at 1. The
        part arrives at 8. A task follows it, or waits for it in its body."""
        zero, one = self.writer(rank=0, ranks=2), self.writer(rank=1, ranks=2)
        send = zero.name("send")
        zero.begin(0, 0, 1, send)
        zero.message(1, 0, SENT, peer=1, tag=7, size=100, communicator=9, task=1)
        zero.end(1, 0, 1)
        zero.idle(1, 10, 0)
        use, part, future, request, joint = one.name("use"), one.name("get", ""), 64, 5 << 32, 128
        one.add(0, 0, 24, ROOT, 100, 7 << 32, 9 + request)
        one.add(0, 0, 28, ROOT, 0, future, request)
        one.add(0, 0, 22, future, 3, 0, joint)
        one.create(0, 0, 1, use)
        if waits:
            one.begin(0, 0, 1, use)
            one.add(0, 0, 3, 1, part, joint, 3)
        else:
            one.add(0, 0, 10, 1, 0, AFTER, joint)
        one.idle(0, 8, 0)
        one.message(8, 0, RECEIVED, peer=0, tag=7, size=100, communicator=9 + request)
        one.add(8, 0, 27, 1, 0, 0, request)
        if waits:
            one.resume(8, 0, 1)
        else:
            one.begin(8, 0, 1, use)
        one.end(9, 0, 1)
        zero.write(), one.write()

    def test_a_part_of_a_collective_is_what_a_task_waited_for(self):
        for waits in False, True:
            with self.subTest(waits=waits):
                self.part_that_arrives(waits)
                text = self.report()
                self.assertIn("1 message", text)
                self.assertRegex(text, r"(?s)critical path waited for.*message.*from rank 0 to")
                self.assertRegex(text, r"\(messages in flight\) +1 +7 ms")

    def test_a_collective_without_a_call_that_waits_is_what_a_task_waited_for(self):
        for rank, begun in (0, 1), (1, 7):
            one = self.writer(rank=rank, ranks=2)
            use = one.name("use")
            one.add(begun, 0, 25, ROOT, one.name("imbrex::allreduce"), 8, 5 << 32)
            one.add(begun, 0, 28, ROOT, 0, 64, 5 << 32)
            one.create(begun, 0, 1, use)
            one.add(begun, 0, 10, 1, 0, AFTER, 64)
            one.idle(begun, 8, 0)
            one.add(8, 0, 27, ROOT, 0, 0, 5 << 32)
            one.begin(8, 0, 1, use)
            one.end(9, 0, 1)
            one.write()
        self.assertRegex(self.report(), r"\(messages in flight\) +1 +1 ms")

    def test_the_first_line_names_what_is_not_recorded(self):
        self.two_ranks()
        self.assertNotIn("not recorded", self.report())
        for path in self.directory.glob("*.json"):
            head = json.loads(path.read_text())
            head["unrecorded"] = [{"what": "one-sided operations", "count": 3}]
            path.write_text(json.dumps(head))
        first = self.report().splitlines()[0]
        self.assertEqual(first, "not recorded, and so not in this report: 6 one-sided operations")
        head["unrecorded"] = [{"what": 3}]
        path.write_text(json.dumps(head))
        self.assertIn('"unrecorded" is no list', run("report", self.directory).stderr)

    def test_a_run_that_ends_as_it_should_has_no_gaps(self):
        self.two_ranks()
        self.assertNotIn("incomplete", self.report())


class Outputs(ReportTest):
    @unittest.skipUnless(has_d3(), "no d3")
    def test_the_page_holds_all_it_needs(self):
        self.two_ranks()
        self.report("--write", "page")
        text = (self.directory / "report.html").read_text()
        self.assertEqual(re.findall(r"<(?:script|link|img|iframe)[^>]*(?:src|href)", text), [])
        head = json.loads(re.search(r"const imbrexHead = (.*?);\nconst", text).group(1))
        data = gzip.decompress(base64.b64decode(
            re.search(r'const imbrexData = "([^"]*)"', text).group(1)))

        def column(name):
            kind, first, length = head["columns"][name]
            return struct.unpack_from(f"<{length}{kind}", data, first)
        self.assertEqual(column("message_bytes"), (100.0,))
        self.assertEqual([head["rows"][row][:2] for row in (*column("message_from"),
                                                            *column("message_to"))],
                         [[0, 0], [1, 0]])
        self.assertEqual([head["rows"][row][0] for row in column("path_row")], [0, 0, 1, 1, 1])
        self.assertEqual(column("pause_start"), (1000.0,))
        self.assertEqual(head["matrix"]["bytes"], [[0, 100], [0, 0]])
        self.assertIn("The tasks that delayed others most", text)

    @unittest.skipUnless(has_d3(), "no d3")
    def test_names_cannot_break_the_page(self):
        rank = self.writer()
        name = rank.name("</script><b>&")
        rank.begin(1, 0, 1, name)
        rank.end(2, 0, 1)
        rank.write()
        self.report("--write", "page")
        text = (self.directory / "report.html").read_text()
        self.assertNotIn("</script><b>", text)
        self.assertIn("&lt;/script&gt;&lt;b&gt;&amp;", text)

    def test_without_d3_who_names_the_page_is_told_what_to_do_and_nothing_is_written(self):
        self.two_ranks()
        result = run("report", "--write", "page,otf2", self.directory, IMBREX_D3="/nowhere/d3.js")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("node-d3", result.stderr)
        self.assertEqual(list(self.directory.glob("*report*")), [])

    def test_without_d3_all_but_the_page_is_written_and_a_line_says_so(self):
        self.two_ranks()
        text = self.report(IMBREX_D3="/nowhere/d3.js")
        self.assertIn("Critical path", text)
        self.assertIn("OTF2" if otf2_files.module() is None else "report.otf2", text)
        self.assertRegex(text, r"\nleft out: the page needs the library d3.*Debian: node-d3")
        self.assertFalse((self.directory / "report.html").exists())

    @unittest.skipUnless(otf2_files.module(), "no otf2")
    def test_otf2_holds_tasks_idle_times_and_messages(self):
        self.two_ranks()
        self.report("--write", "otf2")
        library = otf2_files.module()
        with library.reader.open(str(self.directory / "report.otf2" / "traces.otf2")) as trace:
            seen = [(location.name, type(event).__name__,
                     event.region.name if hasattr(event, "region") else event.msg_length)
                    for location, event in trace.events]
        self.assertIn(("worker 0", "MpiSend", 100), seen)
        self.assertIn(("worker 0", "MpiRecv", 100), seen)
        self.assertEqual(seen.count(("worker 0", "Enter", "receive")), 2)  # suspended between
        self.assertEqual(sum(kind == "Enter" for _, kind, _ in seen),
                         sum(kind == "Leave" for _, kind, _ in seen))
        self.assertEqual([path.name for path in self.directory.glob(".*")], [])

    def test_a_cropped_run_has_them_too(self):
        self.two_ranks()
        library = otf2_files.module()
        out = self.report("--write", "otf2", "--crop", "after")
        self.assertIn("report.otf2" if library else "left out: OTF2", out)

    @unittest.skipUnless(has_d3(), "no d3")
    def test_the_page_goes_where_it_is_told(self):
        self.two_ranks()
        folder = self.directory.parent
        self.report("--write", "page", "-o", folder)
        self.assertIn("<html", (folder / "report.html").read_text())


class Speed(unittest.TestCase):
    def test_the_state_of_a_worker_at_a_time_is_found_without_a_scan(self):
        class Unscanned(list):
            def __iter__(self):
                raise AssertionError("looked at from the first on")
        pieces = Unscanned(history.Piece(time, time + 1, history.State.TASK, 1, 0)
                           for time in range(100))
        self.assertEqual([piece.start for piece in blame.within(pieces, 40, 42)], [40, 41])


class Refusals(ReportTest):
    def check(self, *needles):
        result = run("report", self.directory)
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        for needle in needles:
            self.assertIn(needle, result.stderr)
        self.assertEqual(list(self.directory.parent.rglob("*report*")), [])

    def test_a_truncated_trace(self):
        self.two_ranks()
        path = self.directory / "rank-1.events"
        path.write_bytes(path.read_bytes()[:-20])
        self.check("rank-1.events: truncated")

    def test_another_version(self):
        self.two_ranks()
        path = self.directory / "rank-0.json"
        path.write_text(path.read_text().replace('"version": 3', '"version": 2'))
        self.check("trace version 2", "reads version 3")

    def test_a_missing_rank(self):
        self.two_ranks()
        (self.directory / "rank-0.json").unlink()
        self.check("no file of rank 0")

    def test_no_trace_at_all(self):
        self.check("holds no trace")
        shutil.rmtree(self.directory)
        self.check("no such directory")

    def test_a_place_that_cannot_be_written_to(self):
        self.two_ranks()
        result = run("report", self.directory, "--write", "page", "-o", self.directory / "no",
                     IMBREX_D3=__file__)  # any file
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("there is no directory", result.stderr)

    def test_an_unknown_output(self):
        self.two_ranks()
        result = run("report", self.directory, "--write", "pdf")
        self.assertEqual(result.returncode, 1)
        self.assertIn("there is no pdf; valid: page, otf2, none", result.stderr)

    def test_one_folder_for_two_runs(self):
        self.two_ranks()
        result = run("report", self.directory, self.directory, "-o", self.directory)
        self.assertEqual(result.returncode, 1)
        self.assertIn("-o with 2 directories", result.stderr)


if __name__ == "__main__":
    unittest.main()
