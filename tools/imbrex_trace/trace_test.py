# SPDX-License-Identifier: BSD-3-Clause
"""Methodology: synthetic traces, of which every number is known, go through the command itself;
the tests look at what comes out, and at exit status and message for traces that are not whole."""
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

TOOLS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOOLS))
from imbrex_trace import graph, history, reader  # noqa: E402
from imbrex_trace.synthetic import MILLI, ROOT, START, RankWriter  # noqa: E402

SENT, RECEIVED, POSTED = 7, 8, 24


def run(*arguments):
    return subprocess.run([sys.executable, str(TOOLS / "imbrex"), *map(str, arguments)],
                          capture_output=True, text=True, check=False)


class TraceTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.directory = pathlib.Path(folder.name) / "trace"
        self.directory.mkdir()
        self.output = pathlib.Path(folder.name) / "out"

    def writer(self, **arguments):
        return RankWriter(self.directory, **arguments)

    def replayed(self, rank=0):
        return history.replay(reader.read_run(self.directory)[rank])


class Replay(TraceTest):
    def pieces(self, worker, of=None):
        return [((piece.start - START) / MILLI, (piece.end - START) / MILLI, piece.state.value)
                for piece in (of or self.replayed()).pieces[worker]]

    def test_the_time_of_a_worker_is_divided_without_gaps(self):
        rank = self.writer()
        name = rank.name("work")
        rank.begin(1, 0, 1, name)
        rank.end(3, 0, 1)
        rank.idle(4, 9, 0)
        rank.write()
        self.assertEqual(self.pieces(0), [(0, 1, "overhead"), (1, 3, "in task"),
                                          (3, 4, "overhead"), (4, 9, "idle"),
                                          (9, 10, "overhead")])

    def test_idle_time_inside_a_task_that_polls_in_place_is_idle(self):
        rank = self.writer()
        rank.begin(0, 0, 1, rank.name("poll"))
        rank.idle(2, 8, 0)
        rank.end(10, 0, 1)
        rank.write()
        self.assertEqual(self.pieces(0), [(0, 2, "in task"), (2, 8, "idle"), (8, 10, "in task")])

    def test_a_suspended_task_may_go_on_elsewhere_and_takes_its_whole_stack_along(self):
        rank = self.writer(workers=2)
        outer, inner, wait = rank.name("outer"), rank.name("inner"), rank.name("future", "")
        rank.begin(1, 0, 1, outer)
        rank.begin(2, 0, 2, inner, parent=1)
        rank.suspend(3, 0, 2, wait)
        rank.begin(4, 0, 3, outer)
        rank.end(5, 0, 3)
        rank.resume(6, 1, 2)
        rank.end(7, 1, 2)
        rank.end(8, 1, 1)
        rank.write()
        replayed = self.replayed()
        spans = sorted((s.task, s.part, s.worker, (s.start - START) / MILLI,
                        (s.end - START) / MILLI) for s in replayed.slices if s.task != ROOT)
        self.assertEqual(spans, [(1, 1, 0, 1, 3), (1, 2, 1, 6, 8), (2, 1, 0, 2, 3),
                                 (2, 2, 1, 6, 7), (3, 1, 0, 4, 5)])
        self.assertEqual(self.pieces(1, replayed)[-3:],
                         [(6, 7, "in task"), (7, 8, "in task"), (8, 10, "overhead")])

    def test_a_task_keeps_its_name_and_the_name_of_what_it_waited_for(self):
        rank = self.writer(workers=2)
        name, wait = rank.name("work", "w.cpp:7"), rank.name("MPI_Recv", "")
        rank.begin(1, 0, 5, name, priority=-2, parent=3)
        rank.suspend(2, 0, 5, wait)
        rank.resume(4, 1, 5)
        rank.end(6, 1, 5)
        rank.write()
        replayed = self.replayed()
        first, second = (one for one in replayed.slices if one.task == 5)
        self.assertEqual([(one.worker, one.part, one.waits_for) for one in (first, second)],
                         [(0, 1, wait), (1, 2, -1)])
        task = replayed.tasks[5]
        self.assertEqual((task.name, task.parent, task.priority, task.parts), (name, 3, -2, 2))

    def test_a_resume_whose_clock_runs_a_little_early_is_understood(self):
        rank = self.writer(workers=2)
        name = rank.name("work")
        rank.begin(1, 0, 1, name)
        rank.suspend(5.001, 0, 1, name)
        rank.resume(5, 1, 1)
        rank.end(6, 1, 1)
        rank.write()
        replayed = self.replayed()
        self.assertEqual([(s.worker, (s.end - START) / MILLI) for s in replayed.slices
                          if s.task != ROOT],
                         [(0, 5), (1, 6)])

    def test_a_begin_whose_clock_runs_a_little_early_is_the_first_part(self):
        rank = self.writer(workers=2)
        name = rank.name("work")
        rank.create(1.001, 0, 1, name)
        rank.begin(1, 1, 1, name)
        rank.suspend(3, 1, 1, name)
        rank.resume(5, 1, 1)
        rank.end(6, 1, 1)
        rank.write()
        replayed = self.replayed()
        self.assertEqual([s.part for s in replayed.slices if s.task != ROOT], [1, 2])
        self.assertEqual(replayed.tasks[1].parts, 2)

    def test_a_task_of_the_library_is_not_main(self):
        rank = self.writer()
        name = rank.name("destructors of results")
        rank.create(1, 0, 1, name, parent=0)
        rank.begin(2, 0, 1, name, parent=0)
        rank.end(3, 0, 1)
        rank.resume(4, 0, ROOT)
        rank.write()
        self.assertEqual([number for number, task in self.replayed().tasks.items() if task.root],
                         [ROOT])
        self.assertEqual(self.pieces(0), [(0, 2, "overhead"), (2, 3, "in task"),
                                          (3, 4, "overhead"), (4, 10, "in task")])

    def test_main_is_a_task_from_the_start(self):
        rank = self.writer(workers=2, main_runs=True)
        wait = rank.name("finish", "")
        rank.suspend(3, 0, 99, wait)
        rank.idle(3, 7, 0)
        rank.resume(7, 0, 99)
        rank.write()
        self.assertEqual(self.pieces(0), [(0, 3, "in task"), (3, 7, "idle"), (7, 10, "in task")])
        self.assertEqual(self.pieces(1), [(0, 10, "overhead")])

    def test_main_that_never_waits_is_a_task_too(self):
        self.writer(main_runs=True).write()
        self.assertEqual(self.pieces(0), [(0, 10, "in task")])

    def test_main_may_begin_by_a_record(self):
        rank = self.writer(main_runs=True)
        rank.begin(2, 0, 99, rank.name("main", ""), parent=0)
        rank.write()
        self.assertEqual(self.pieces(0), [(0, 2, "overhead"), (2, 10, "in task")])

    def test_a_thread_that_waits_between_its_regions_is_no_task(self):
        rank = self.writer(workers=2)
        name, region = rank.name("parallel"), rank.name("the next parallel region", "")
        rank.suspend(1, 1, 99, region)  # no record made task 99
        rank.resume(3, 1, 99)
        rank.begin(4, 1, 1, name, parent=99)
        rank.suspend(5, 1, 1, rank.name("barrier", ""))
        rank.resume(6, 1, 1)
        rank.end(7, 1, 1)
        rank.suspend(8, 1, 99, region)
        rank.write()
        self.assertEqual(self.pieces(1), [(0, 4, "overhead"), (4, 5, "in task"),
                                          (5, 6, "overhead"), (6, 7, "in task"),
                                          (7, 10, "overhead")])

    def test_numbers_of_requests_and_roots_are_apart_from_communicators_and_sizes(self):
        rank = self.writer()
        call = rank.name("MPI_Bcast")
        rank.begin(1, 0, 1, rank.name("work"))
        rank.message(2, 0, SENT, 3, 7, size=8, communicator=5 + (9 << 32), task=1)
        rank.collective(3, 4, 0, 1, call, size=16 + (3 << 40), communicator=5)
        rank.end(5, 0, 1)
        rank.write()
        replayed = self.replayed()
        self.assertEqual([(one.communicator, one.bytes) for one in replayed.messages], [(5, 8)])
        self.assertEqual([(one.communicator, one.bytes) for one in replayed.collectives],
                         [(5, 16)])

    def test_a_head_may_lack_the_command_and_hold_bytes_that_are_no_text(self):
        rank = self.writer()
        rank.name("caf?")
        del rank.head["command"], rank.head["processors"]
        rank.write()
        path = self.directory / "rank-0.json"
        path.write_bytes(path.read_bytes().replace(b"caf?", b"caf\xe9"))
        read = reader.read_run(self.directory)[0]
        self.assertEqual((read.command, read.processors, read.names[-1].name),
                         ((), (), "caf\ufffd"))

    def test_a_task_open_at_the_end_lasts_until_the_end(self):
        rank = self.writer()
        rank.begin(4, 0, 1, rank.name("exits"))
        rank.write()
        self.assertEqual(self.pieces(0), [(0, 4, "overhead"), (4, 10, "in task")])

    def test_a_task_that_ends_where_it_does_not_run_is_refused(self):
        rank = self.writer(workers=2)
        rank.begin(1, 0, 7, rank.name("work"))
        rank.end(2, 1, 7)
        rank.write()
        with self.assertRaisesRegex(reader.TraceError, "worker 1, 2.000 ms: task 7 ends, but"):
            self.replayed()

    def test_a_resume_without_a_suspension_is_refused(self):
        rank = self.writer()
        rank.begin(1, 0, 7, rank.name("work"))
        rank.end(2, 0, 7)
        rank.resume(3, 0, 7)
        rank.write()
        with self.assertRaisesRegex(reader.TraceError, "task 7 is resumed, but"):
            self.replayed()


class Messages(TraceTest):
    def channel(self, *tags):
        """Rank 0 sends with these tags, from 1 ms on. The records of rank 1 are the test's."""
        zero, one = self.writer(rank=0, ranks=2), self.writer(rank=1, ranks=2)
        for rank in (zero, one):
            rank.begin(0, 0, 1, rank.name("main"))
        for time, tag in enumerate(tags, 1):
            zero.message(time, 0, SENT, peer=1, tag=tag)
        zero.write()
        return one

    def pairs(self):
        return sorted(((flight.sent - START) // MILLI, (flight.received - START) // MILLI)
                      for flight in graph.flights([self.replayed(0), self.replayed(1)]))

    def test_the_nth_message_sent_is_the_nth_received_per_tag_and_communicator(self):
        one = self.channel(7, -9, 7)
        for time, tag in ((4, -9), (5, 7), (6, 7)):
            one.message(time, 0, RECEIVED, peer=0, tag=tag)
        one.message(7, 0, RECEIVED, peer=0, tag=7, communicator=1)  # no rank sent this message
        one.write()
        self.assertEqual(self.pairs(), [(1, 5), (2, 4), (3, 6)])

    def test_a_message_is_that_of_the_receive_that_began_first_whichever_is_complete_first(self):
        one = self.channel(7, 7, 7)
        for request, tag in ((1, 7), (2, -1), (3, 7)):  # the second one has any tag
            one.add(0.5 + request / 10, 0, POSTED, 1, 8, tag % 2**32 << 32, request << 32)
        for time, request in ((4, 2), (5, 3), (6, 1)):
            one.message(time, 0, RECEIVED, peer=0, tag=7, communicator=request << 32)
        one.write()
        self.assertEqual(self.pairs(), [(1, 6), (2, 4), (3, 5)])

    def test_a_receive_that_gets_no_message_is_none(self):
        one = self.channel(7)
        one.add(2, 0, POSTED, 1, 8, 7 << 32, 1 << 32)
        one.write()
        self.assertEqual((self.pairs(), self.replayed(1).messages), ([], []))


class Summary(TraceTest):
    def test_the_table_holds_what_happened(self):
        rank = self.writer(workers=2)
        work, wait = rank.name("work", "w.cpp:7"), rank.name("event", "")
        rank.begin(0, 0, 1, work)
        rank.suspend(3, 0, 1, wait)
        rank.idle(3, 8, 0)
        rank.begin(0, 1, 2, work)
        rank.end(1, 1, 2)
        rank.resume(5, 1, 1)
        rank.end(7, 1, 1)
        rank.write()
        result = run("summary", self.directory)
        self.assertEqual(result.returncode, 0, result.stderr)
        rows = [line.split() for line in result.stdout.splitlines()]
        self.assertEqual(rows[1], ["0", "0", "0.003000", "30.0", "0.005000", "50.0", "0.002000",
                                   "20.0", "1", "1"])
        self.assertEqual(rows[2], ["0", "1", "0.003000", "30.0", "0.000000", "0.0", "0.007000",
                                   "70.0", "1", "0"])
        self.assertEqual(rows[3], ["all", "0.006000", "30.0", "0.005000", "25.0", "0.009000",
                                   "45.0", "2", "1"])
        self.assertEqual(rows[4][0], "(in-task:")
        self.assertEqual(rows[9], ["work", "2", "3000.000", "0.006000", "w.cpp:7"])

    def test_crop_counts_the_named_tasks_time_only(self):
        rank = self.writer()
        set_up, work = rank.name("set up"), rank.name("work")
        for time, task, name in ((0, 1, set_up), (4, 2, work), (6, 3, work)):
            rank.begin(time, 0, task, name)
            rank.end(time + 1, 0, task)
        rank.write()
        result = run("summary", self.directory, "--crop", "work,absent")
        self.assertEqual(result.stdout.splitlines()[1].split()[2:4], ["0.002000", "66.7"])
        self.assertNotIn("set up", result.stdout)
        result = run("summary", self.directory, "--crop", "absent")
        self.assertEqual(result.returncode, 1)
        self.assertIn("no task is named absent; names are: work, set up", result.stderr)


class Timeline(TraceTest):
    def test_two_runs_share_one_scale_and_gaps_stay_empty(self):
        rank = self.writer(end=10)
        name = rank.name("a<b")
        rank.begin(0, 0, 1, name)
        rank.end(5, 0, 1)
        rank.idle(5, 10, 0)
        rank.write()
        other = self.directory.parent / "second"
        other.mkdir()
        second = RankWriter(other, end=5)
        second.begin(0, 0, 1, second.name("a<b"))
        second.end(5, 0, 1)
        second.write()
        result = run("timeline", self.directory, other, "-o", self.output, "--title", "T & t",
                     "--label", "slow")
        self.assertEqual(result.returncode, 0, result.stderr)
        root = xml.etree.ElementTree.parse(self.output).getroot()
        space = "{http://www.w3.org/2000/svg}"
        titled = [box for box in root.iter(space + "rect") if box.find(space + "title") is not None]
        widths = [round(float(box.get("width"))) for box in titled]
        self.assertEqual(widths, [700, 700])  # 5 of the longer run's 10 ms, of 1400
        words = [element.text for element in root.iter(space + "text")]
        self.assertIn("T & t", words)
        self.assertIn("a<b", words)  # the legend
        self.assertTrue(any(word.startswith("slow: 10 ms (in task 50.0 %, idle 50.0 %")
                            for word in words), words)
        self.assertTrue(any(word.startswith("second: 5 ms") for word in words), words)

    def test_copies_of_data_are_lines_from_who_sends_them_to_who_gets_them(self):
        for number in range(3):
            rank = self.writer(rank=number, ranks=3)
            rank.datum(5, "tile <1>")
            if number < 2:
                rank.copy(1 + 4 * number, 0, 18, peer=number + 1, root=0, ticket=0, datum=5)
            if number > 0:
                rank.copy(4 * number, 0, 19, peer=0, root=0, ticket=0, datum=5)
            rank.write()
        result = run("timeline", self.directory, "-o", self.output)
        self.assertEqual(result.returncode, 0, result.stderr)
        root = xml.etree.ElementTree.parse(self.output).getroot()
        space = "{http://www.w3.org/2000/svg}"
        found = {line.find(space + "title").text: (float(line.get("x2")) - float(line.get("x1")),
                                                   float(line.get("y2")) > float(line.get("y1")))
                 for line in root.iter(space + "line") if line.find(space + "title") is not None}
        self.assertEqual(found, {
            "tile <1>, 8 bytes, from rank 0 to rank 1, 3 ms": (420, True),
            "tile <1>, 8 bytes, from rank 1 as relay of rank 0 to rank 2, 3 ms": (420, True)})
        words = [element.text for element in root.iter(space + "text")]
        self.assertIn("passed on by a relay", words)

    def test_the_size_does_not_grow_with_the_number_of_tasks(self):
        rank = self.writer(end=100)
        name = rank.name("tiny")
        for number in range(50_000):
            rank.begin(number * 0.002, 0, number + 1, name)
            rank.end(number * 0.002 + 0.0015, 0, number + 1)
        rank.write()
        result = run("timeline", self.directory, "-o", self.output)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertLess(self.output.stat().st_size, 300_000)
        self.assertGreater(self.output.read_text().count("<rect"), 1000)


class Refusals(TraceTest):
    def check(self, *needles):
        """Every command fails, says so in one line, and writes nothing."""
        for command in (["summary", self.directory],
                        ["timeline", self.directory, "-o", self.output]):
            result = run(*command)
            self.assertEqual(result.returncode, 1, command)
            self.assertEqual(result.stdout, "")
            self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
            for needle in needles:
                self.assertIn(needle, result.stderr)
            self.assertEqual(list(self.output.parent.glob("*out*")), [])

    def written(self, **arguments):
        rank = self.writer(**arguments)
        rank.begin(1, 0, 1, rank.name("work"))
        rank.end(2, 0, 1)
        return rank

    def test_no_directory(self):
        self.directory.rmdir()
        self.check("no such directory")

    def test_an_empty_directory(self):
        self.check("holds no trace", "IMBREX_TRACE")

    def test_truncated_events(self):
        rank = self.written()
        del rank.data[-1:]
        rank.write()
        self.check("rank-0.events: truncated: 143 bytes, not the 144 of its 3 records")

    def test_more_events_than_announced(self):
        rank = self.written()
        rank.data += bytes(48)
        rank.write()
        self.check("too long")

    def test_truncated_json(self):
        self.written().write()
        path = self.directory / "rank-0.json"
        path.write_text(path.read_text()[:-5])
        self.check("rank-0.json: truncated or no JSON")

    def test_no_events_file(self):
        self.written().write()
        (self.directory / "rank-0.events").unlink()
        self.check("rank-0.events: missing")

    def test_a_missing_rank(self):
        self.written(rank=0, ranks=3).write()
        self.written(rank=2, ranks=3).write()
        self.check("of 3 ranks, no file of rank 1")

    def test_ranks_of_two_runs(self):
        self.written(rank=0, ranks=1).write()
        self.written(rank=1, ranks=2).write()
        self.check("runs with 1 and 2 ranks")

    def test_a_wrong_version(self):
        rank = self.written()
        rank.head["version"] = 2
        rank.write()
        self.check("trace version 2; this tool reads version 3", "trace the program again")

    def test_more_workers_or_ranks_than_there_can_be(self):
        for key, count in (("workers", 10**12), ("ranks", 10**12), ("workers", 0), ("ranks", -1)):
            rank = self.written()
            rank.head[key] = count
            rank.write()
            self.check(f"{count} {key}: a run has 1 to")

    def test_a_name_that_cannot_be_shown(self):
        rank = self.written()
        rank.name("half a surrogate pair: \ud800")
        rank.write()
        self.check("no JSON")

    def test_a_missing_key(self):
        rank = self.written()
        del rank.head["workers"]
        rank.write()
        self.check('key "workers" is missing')

    def test_a_command_or_processors_of_another_kind(self):
        for key, value in (("command", "solve"), ("processors", [0, "1"])):
            rank = self.written()
            rank.head[key] = value
            rank.write()
            self.check(f'key "{key}" is no list of')

    def test_an_unknown_kind(self):
        rank = self.written()
        rank.add(3, 0, 99)
        rank.write()
        self.check("record 3: unknown kind 99")

    def test_a_worker_out_of_range(self):
        rank = self.written()
        rank.idle(3, 4, 1)
        rank.write()
        self.check("record 3: worker 1, but the rank has 1")

    def test_a_name_out_of_range(self):
        rank = self.written()
        rank.begin(3, 0, 2, 2)
        rank.write()
        self.check("record 3: name 2, but the file has 2")

    def test_an_output_directory_that_is_not_there(self):
        self.written().write()
        result = run("timeline", self.directory, "-o", self.output / "nowhere" / "x.svg")
        self.assertEqual(result.returncode, 1)
        self.assertIn("there is no directory", result.stderr)

    def test_more_labels_than_runs(self):
        self.written().write()
        result = run("timeline", self.directory, "-o", self.output, "--label", "a", "--label", "b")
        self.assertEqual(result.returncode, 1)
        self.assertIn("--label given 2 times for 1", result.stderr)
        self.assertFalse(self.output.exists())

    def test_a_missing_command_shows_the_usage(self):
        result = run()
        self.assertEqual(result.returncode, 2)
        self.assertIn("usage: imbrex", result.stderr)


if __name__ == "__main__":
    unittest.main()
