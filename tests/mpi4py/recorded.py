#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs mpi4py's test suite on one rank, and records how each test ended.

usage: recorded.py DIRECTORY MAIN [ARGUMENT...]

MAIN is mpi4py's test/main.py. Each rank writes DIRECTORY/<rank>: one line when a test begins, one
when it ends, so that the last line names the test in which a program died or hung.
"""
import pathlib
import runpy
import sys
import unittest


class Recorder(unittest.TextTestResult):
    """Writes `begin ID` and `end ID OUTCOME` as they happen."""

    place = None  # a directory
    file = None

    def write(self, *words):
        if Recorder.file is None:
            from mpi4py import MPI  # main.py has imported it, with its options

            rank = MPI.COMM_WORLD.Get_rank()
            Recorder.file = (Recorder.place / str(rank)).open("w", encoding="utf-8", buffering=1)
        Recorder.file.write("\t".join(word.replace("\n", " ") for word in words) + "\n")

    def startTest(self, test):
        super().startTest(test)
        self.write("begin", test.id())

    def addSuccess(self, test):
        super().addSuccess(test)
        self.write("end", test.id(), "ok")

    def addError(self, test, err):
        super().addError(test, err)
        self.write("end", test.id(), "error", repr(err[1]))

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.write("end", test.id(), "failure", repr(err[1]))

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.write("end", test.id(), "skipped", reason)

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self.write("end", test.id(), "expected failure")

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.write("end", test.id(), "unexpected success")

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.write("end", subtest.id(), "failure", repr(err[1]))


def main():
    Recorder.place = pathlib.Path(sys.argv[1])
    suite = sys.argv[2]
    sys.argv = [suite, *sys.argv[3:]]
    sys.dont_write_bytecode = True
    sys.path[0] = str(pathlib.Path(suite).parent)
    unittest.TextTestRunner.resultclass = Recorder
    # main.py loads the tests with its own module as program, so it must run as such.
    runpy.run_path(suite, run_name="__main__")


main()
