#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Methodology: a transfer of known size over the network takes at least the time that its rate
asks for, and far less outside; mpirun finds a namespace for each rank; nothing is left behind."""
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

NETLAB = str(pathlib.Path(__file__).resolve().parent / "netlab")
CANNOT = 77
# Prints the seconds that so many bytes take through the loopback.
TRANSFER = """
import socket, sys, threading, time
size = int(sys.argv[1])
server = socket.create_server(("127.0.0.1", 0))
def send():
    with socket.create_connection(server.getsockname()) as to:
        to.sendall(bytes(size))
threading.Thread(target=send).start()
begin = time.monotonic()
connection, _ = server.accept()
left = size
while left:
    left -= len(connection.recv(1 << 16))
print(time.monotonic() - begin)
"""


def netlab(*arguments, seconds=60):
    return subprocess.run([NETLAB, *arguments], capture_output=True, text=True, check=False,
                          timeout=seconds)


def is_open_mpi():
    if shutil.which("mpirun") is None:
        return False
    version = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=False)
    return re.search(r"\(Open MPI\) 4\.", version.stdout) is not None


class NetlabTest(unittest.TestCase):
    def seconds_at(self, rate, *options, size=8 << 20):
        done = netlab("--rate", rate, *options, "--", sys.executable, "-c", TRANSFER, str(size))
        self.assertEqual(done.returncode, 0, done.stderr)
        return float(done.stdout)

    def skip_without_links(self, done):
        if done.returncode == CANNOT:
            self.skipTest(done.stderr.strip())

    def test_limits_the_rate(self):
        least = (8 << 20) * 8 / 200e6
        slow = self.seconds_at("200mbit")
        self.assertGreater(slow, 0.9 * least)
        self.assertLess(self.seconds_at("10gbit"), 0.5 * slow)

    def test_short_packets_limit_the_rate_of_short_messages(self):
        size = 60_000
        least = (size - 9_000) * 8 / 5e6  # the first packet passes at once
        self.assertGreater(self.seconds_at("5mbit", "--mtu", "9000", size=size), 0.9 * least)
        self.assertLess(self.seconds_at("5mbit", size=size), 0.5 * least)

    def test_exits_as_the_command(self):
        self.assertEqual(netlab("--", "sh", "-c", "exit 5").returncode, 5)

    def test_gives_each_rank_a_link(self):
        if not is_open_mpi():
            self.skipTest("mpirun is not that of Open MPI 4")
        done = netlab("--per-rank", "--", "mpirun", "-n", "3", "sh", "-c",
                      "uname -n; ip -o addr; echo $OMPI_MCA_btl_tcp_flags only sends")
        self.skip_without_links(done)
        self.assertEqual(done.returncode, 0, done.stderr)
        for rank in range(3):
            self.assertIn(f"rank{rank}\n", done.stdout)
            self.assertIn(f"10.77.0.{rank + 1}/24", done.stdout)
        self.assertEqual(done.stdout.count("\n1 only sends"), 3, done.stdout)

    def test_an_interrupt_ends_what_it_started(self):
        self.skip_without_links(netlab("--per-rank", "--ranks", "1", "--", "true"))
        mark = "3600.125"  # seconds that no other process sleeps
        with subprocess.Popen([NETLAB, "--per-rank", "--ranks", "1", "--", "sleep", mark]) as job:
            time.sleep(1.5)
            job.send_signal(signal.SIGINT)
            self.assertEqual(job.wait(timeout=20), 128 + signal.SIGINT)
        left = subprocess.run(["pgrep", "-f", mark.replace(".", "[.]")], capture_output=True,
                              text=True, check=False)
        self.assertEqual(left.stdout, "")

    def test_refuses_what_makes_no_sense(self):
        for arguments, said in ((["--rate", "fast", "--", "true"], "--rate fast"),
                                (["--mtu", "576", "--", "true"], "--mtu 576"),
                                (["--per-rank", "--", "mpirun", "true"], "how many ranks"),
                                (["--per-rank", "--ranks", "0", "--", "true"], "0 ranks"),
                                (["--", "/no/such/program"], "/no/such/program")):
            done = netlab(*arguments)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(said, done.stderr)


if __name__ == "__main__":
    probe = netlab("--", "true")
    if probe.returncode == CANNOT:
        print(probe.stderr, file=sys.stderr)
        sys.exit(CANNOT)
    unittest.main()
