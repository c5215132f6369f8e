# SPDX-License-Identifier: BSD-3-Clause
"""The tests that tools/mutate runs on each mutant: those that ctest knows by the label core.

ctest itself cannot: it neither stops at once, nor takes a shorter time limit than a test's own, nor
begins with the tests that have found most so far.
"""
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import tempfile
import threading
import time

UNIT = "imbrex_unit_test"
TIME_IS_OVER = object()
CUT = "is cut off"
# Beyond these a test hangs; generous, for machines on which much else runs.
LIMIT_S, LIMIT_TIMES = 8, 6
WAITING_JOBS = 8  # of the label `waiting`: they sleep most of the time
UNDERSTOOD = {"ENVIRONMENT", "LABELS", "TIMEOUT", "WORKING_DIRECTORY", "SKIP_RETURN_CODE",
              "SKIP_REGULAR_EXPRESSION", "PASS_REGULAR_EXPRESSION", "FAIL_REGULAR_EXPRESSION",
              "WILL_FAIL", "FIXTURES_SETUP", "FIXTURES_REQUIRED", "DEPENDS"}


@dataclasses.dataclass(eq=False)
class Test:
    name: str
    command: list
    properties: dict
    before: list = dataclasses.field(default_factory=list)  # tests whose files it needs
    seconds: float = None                                   # without any mutant
    kills: int = 0

    def has_label(self, label):
        return label in self.properties.get("LABELS", [])

    @property
    def limit(self):
        if self.seconds is None:
            return float(self.properties.get("TIMEOUT", 300))
        return LIMIT_S + LIMIT_TIMES * self.seconds


class Suite:
    """Not for several threads at a time."""

    def __init__(self, tree, memory, jobs):
        self.tree, self.memory, self.jobs = tree, memory, jobs
        self.tests = read_tests(tree)
        self.small = [test for test in self.tests if not test.has_label("full")]
        self.full = [test for test in self.tests if test.has_label("full")]
        self.digest = None
        self.passed = {}  # names of tests, by that of a mutant for which the time was too short
        restrain()

    def text(self):
        return ", ".join(f"{len(tests)} tests {what} in "
                         f"{sum(test.seconds for test in tests):.0f} s"
                         for tests, what in ((self.small, "of the small set"),
                                             (self.full, "of the label full"))
                         if tests and all(test.seconds is not None for test in tests))

    def measure(self, digest, with_full, until):
        """Runs the tests without any mutant, unless that was done for this source. Returns the
        failure, or None."""
        self.digest = digest
        kept = json.loads(self.memory.read_text()) if self.memory.exists() else {}
        for test in self.tests:
            test.kills = kept.get("kills", {}).get(test.name, 0)
            if kept.get("source") == digest:
                test.seconds = kept["seconds"].get(test.name)
                self.passed = {mutant: set(names) for mutant, names in kept["passed"].items()}
        wanted = self.tests if with_full else self.small
        failed = self.run_all([test for test in wanted if test.seconds is None], until, True, set())
        self.keep()
        if failed is TIME_IS_OVER:
            return "the tests take longer than --minutes; what was measured is kept"
        # A failure beside much else may be one of the machine: it has to come again.
        failed = [test for test, _ in failed if self.run_part([test], 1, None, True, set())]
        self.keep()
        return "these fail: " + " ".join(test.name for test in failed) if failed else None

    def keep(self):
        self.memory.write_text(json.dumps({
            "source": self.digest,
            "seconds": {test.name: test.seconds for test in self.tests
                        if test.seconds is not None},
            "kills": {test.name: test.kills for test in self.tests if test.kills},
            "passed": {mutant: sorted(names) for mutant, names in self.passed.items()}}))

    def run(self, mutant, until, full=False):
        """The test that fails, or None; TIME_IS_OVER if that came first: then the next run with
        this mutant goes on after the tests that have passed."""
        about = words_of(mutant)
        tests = sorted(self.full if full else self.small, key=lambda test: (
            test.name != UNIT, not any(word in test.name for word in about),
            -test.kills / (0.1 + test.seconds), test.seconds))
        passed = self.passed.setdefault(mutant, set())
        while True:
            failed = self.run_all([test for test in tests if test.name not in passed], until, False,
                                  passed)
            if failed is TIME_IS_OVER or not failed:
                return failed or None
            test, how = failed[0]
            # A failure that does not come again is usually the machine's, which runs much else.
            if any(self.run_part([test], 1, until, True, set()) for _ in range(2)):
                test.kills += 1
                return f"{test.name} {how}"
            if time.monotonic() > until:
                return TIME_IS_OVER
            passed.add(test.name)

    def forget(self, mutant):
        self.passed.pop(mutant, None)

    def run_all(self, tests, until, to_the_end, passed):
        """The tests that fail, and how: the first, or all; TIME_IS_OVER."""
        failed = []
        for waiting, jobs in ((False, self.jobs), (True, WAITING_JOBS)):
            part = [test for test in tests if test.has_label("waiting") == waiting]
            if part:
                failed += self.run_part(part, jobs, until, to_the_end, passed)
            if failed and not to_the_end:
                return failed
            if until is not None and time.monotonic() > until:
                return TIME_IS_OVER
        return failed

    def run_part(self, tests, jobs, until, to_the_end, passed):
        stop, left, lock, failed = threading.Event(), list(reversed(tests)), threading.Lock(), []

        def stopped():
            return stop.is_set() or until is not None and time.monotonic() > until

        def work():
            while not stopped():
                with lock:
                    if not left:
                        return
                    test = left.pop()
                began = time.monotonic()
                how = run(test, self.tree, stopped)
                if how == CUT:
                    return
                if how is None:
                    passed.add(test.name)
                    if test.seconds is None:
                        test.seconds = time.monotonic() - began
                    continue
                failed.append((test, how))
                if not to_the_end:
                    stop.set()

        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            ends = [pool.submit(work) for _ in range(jobs)]
            try:
                for end in ends:
                    end.result()
            finally:
                stop.set()  # also if a person has interrupted this
        return failed


def words_of(mutant):
    """Returns words in the names of tests that are likely to find the mutant, by its path."""
    path = pathlib.PurePath(mutant.partition(":")[0])
    words = re.findall(r"[a-z]{4,}", " ".join([*path.parts[2:-1], path.stem]))
    return [word.removesuffix("s") for word in words]


def read_tests(tree):
    listing = json.loads(subprocess.run(
        ["ctest", "--test-dir", tree, "--show-only=json-v1", "-L", "^core$"], check=True,
        capture_output=True, text=True).stdout)
    tests, setups, units = [], {}, 0
    for entry in listing["tests"]:
        properties = {item["name"]: item["value"] for item in entry.get("properties", [])}
        if not set(properties) <= UNDERSTOOD:
            raise SystemExit(f"tools/mutate: {entry['name']} has a property that this tool does "
                             f"not know: {' '.join(sorted(set(properties) - UNDERSTOOD))}")
        if pathlib.PurePath(entry["command"][0]).name == UNIT:
            units += 1  # a process for all is quicker
            continue
        test = Test(entry["name"], entry["command"], properties)
        for fixture in properties.get("FIXTURES_SETUP", []):
            setups.setdefault(fixture, []).append(test)
        tests.append(test)
    for test in tests:
        for fixture in test.properties.get("FIXTURES_REQUIRED", []):
            test.before += setups.get(fixture, [])
    if units:
        tests.insert(0, Test(UNIT, [str(tree / "bin" / UNIT), "--gtest_brief=1",
                                    "--gtest_fail_fast"], {"LABELS": ["core"]}))
    return tests


def run(test, tree, stopped):
    """None if the test passes, or how it does not. CUT: `stopped()` before it had ended."""
    for other in test.before:
        how = run(other, tree, stopped)
        if how is not None:
            return how
    return run_alone(test, tree, stopped)


def run_alone(test, tree, stopped):
    properties = test.properties
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("IMBREX_")}
    for setting in properties.get("ENVIRONMENT", []):
        name, _, value = setting.partition("=")
        environment[name] = value
    with tempfile.TemporaryFile() as output:
        with subprocess.Popen(test.command, stdin=subprocess.DEVNULL, stdout=output,
                              stderr=subprocess.STDOUT, env=environment, start_new_session=True,
                              cwd=properties.get("WORKING_DIRECTORY", tree)) as process:
            status = wait(process, time.monotonic() + test.limit, stopped)
        output.seek(0)
        text = output.read(1 << 20).decode(errors="replace")
    if status is None:
        return CUT if stopped() else "hangs"
    return None if is_right(status, text, properties) else "fails"


def is_right(status, text, properties):
    def said(what):
        return any(re.search(one, text) for one in properties.get(what + "_REGULAR_EXPRESSION", []))

    if status == properties.get("SKIP_RETURN_CODE") or said("SKIP"):
        return True
    if said("FAIL"):
        return False
    right = said("PASS") if "PASS_REGULAR_EXPRESSION" in properties else status == 0
    return right != bool(properties.get("WILL_FAIL", False))


def restrain():
    """A mutant may want all memory, or all of the disk: it ends then, and nothing else does."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))
    with open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:
        score.write("1000")


def wait(process, until, stopped):
    """The exit status; None if the time was over, or `stopped()`. Nothing of it runs any more."""
    pause = 0.001
    while process.poll() is None and time.monotonic() < until and not stopped():
        time.sleep(pause)
        pause = min(2 * pause, 0.05)
    status = process.poll()
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
    return status
