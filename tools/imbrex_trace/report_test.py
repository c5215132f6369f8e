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
from imbrex_trace import blame, copies, graph, history, otf2_files, page, reader  # noqa: E402
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

    def report(self, *arguments, **environment):
        result = run("report", self.directory, *arguments, **environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def table(self, title, text=None):
        """Rows of cells, the first is the head."""
        lines = (text or self.report("--write", "none")).splitlines()
        start = next(i for i, line in enumerate(lines) if line.startswith(title))
        rows = []
        for line in lines[start + 1:]:
            if not line or line.startswith("(") and line.endswith(")"):  # the note
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
        self.assertEqual(rows[1], ["0", "stealing", "0.005000", "50.0", "0.005000", "50.0",
                                   "0.000000", "0.0", "-"])
        # Under way from 4.5 to 6, and the worker idle all that time.
        self.assertEqual(rows[2], ["1", "stealing", "0.004000", "40.0", "0.005000", "50.0",
                                   "0.001000", "10.0", "0.0"])

    def test_the_critical_path_crosses_ranks_by_the_message(self):
        self.two_ranks()
        text = self.report("--write", "none")
        self.assertIn("Critical path: 0.009000 s, through 2 of 2 ranks", text)
        rows = {row[0]: row[1:] for row in self.table("Critical path", text)}
        self.assertEqual(rows["long"], ["1", "0.004000", "44.4"])
        self.assertEqual(rows["send"], ["1", "0.000500", "5.6"])
        self.assertEqual(rows["(messages on their way)"], ["1", "0.001500", "16.7"])
        self.assertEqual(rows["receive"], ["1", "0.001000", "11.1"])
        self.assertEqual(rows["after"], ["1", "0.002000", "22.2"])

    def test_idle_time_is_blamed_on_the_peer_and_on_the_task_that_ran_there(self):
        self.two_ranks()
        text = self.report("--write", "none")
        self.assertEqual(self.table("Idle for", text)[1:],
                         [["0", "0.000000", "0.000000", "0.005000"],
                          ["1", "0.005000", "0.000000", "0.000000"]])
        worst = self.table("The tasks that delayed", text)
        # Of 5 ms: "long" ran in 3, "send" in 0.5, the rest was the message.
        self.assertEqual(worst[1], ["long", "0", "1", "0.004000", "0.003000", "l.cpp:1"])
        self.assertEqual(worst[2], ["send", "0", "2", "0.001000", "0.000500", "s.cpp:2"])
        self.assertEqual(len(worst), 3)

    def test_what_ran_instead_is_blamed_while_a_ready_task_waits(self):
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
                         [("other", "0.005000"), ("send", "0.001000")])
        rows = {row[0]: row[1:] for row in self.table("Critical path", text)}
        self.assertEqual(rows["(ready, but no worker was free)"][1], "0.006000")

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
        self.assertEqual(self.table("Idle for", text)[2][1], "0.006000")

    def test_the_matrix_counts_messages_and_bytes(self):
        self.two_ranks()
        text = self.report("--write", "none")
        self.assertEqual(self.table("Messages from", text)[1:],
                         [["0", "0", "1", "1"], ["1", "0", "0", "0"]])
        self.assertEqual(self.table("Bytes from", text)[1], ["0", "0", "100", "100"])

    def test_several_runs_one_after_the_other(self):
        self.two_ranks()
        result = run("report", "--write", "none", self.directory, self.directory)
        self.assertEqual(result.stdout.count("Critical path"), 2)


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
        self.assertEqual(self.table("Data that travelled: 3 copies, 1 of them passed on by relays"),
                         [["datum", "copies", "by relays", "bytes", "median s", "longest s"],
                          ["tile", "2", "1", "2000", "0.004000", "0.004000"],
                          ["row", "1", "0", "10", "-", "-"]])

    def test_a_run_without_such_data_says_nothing_of_them(self):
        self.two_ranks()
        self.assertNotIn("Data that travelled", self.report("--write", "none"))


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
        self.assertIn("work", self.report("--write", "page,perfetto" if has_d3() else "perfetto"))

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
        result = run("report", "--write", "page,perfetto", self.directory,
                     IMBREX_D3="/nowhere/d3.js")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("node-d3", result.stderr)
        self.assertEqual(list(self.directory.glob("*report*")), [])

    def test_without_d3_all_but_the_page_is_written_and_a_line_says_so(self):
        self.two_ranks()
        text = self.report(IMBREX_D3="/nowhere/d3.js")
        self.assertIn("Critical path", text)
        self.assertIn("report.perfetto.json", text)
        self.assertRegex(text, r"\nleft out: the page needs the library d3.*Debian: node-d3")
        self.assertTrue((self.directory / "report.perfetto.json").exists())
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
        out = self.report("--write", "perfetto,otf2", "--crop", "after")
        self.assertIn("report.otf2" if library else "left out: OTF2", out)
        events = json.loads((self.directory / "report.perfetto.json").read_text())["traceEvents"]
        self.assertGreaterEqual(min(event.get("ts", 0) for event in events), 0)
        self.assertTrue(any(event["name"] == "long" for event in events))

    def test_perfettos_file_goes_where_it_is_told(self):
        self.two_ranks()
        folder = self.directory.parent
        self.report("--write", "perfetto", "-o", folder)
        events = json.loads((folder / "report.perfetto.json").read_text())["traceEvents"]
        self.assertTrue(any(event["name"] == "message" for event in events))


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
        path.write_text(path.read_text().replace('"version": 2', '"version": 1'))
        self.check("trace version 1", "reads version 2")

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
        result = run("report", self.directory, "--write", "perfetto", "-o", self.directory / "no")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("there is no directory", result.stderr)

    def test_an_unknown_output(self):
        self.two_ranks()
        result = run("report", self.directory, "--write", "pdf")
        self.assertEqual(result.returncode, 1)
        self.assertIn("there is no pdf; valid: page, perfetto, otf2, none", result.stderr)

    def test_one_folder_for_two_runs(self):
        self.two_ranks()
        result = run("report", self.directory, self.directory, "-o", self.directory)
        self.assertEqual(result.returncode, 1)
        self.assertIn("-o with 2 directories", result.stderr)


if __name__ == "__main__":
    unittest.main()
