# SPDX-License-Identifier: BSD-3-Clause
"""`imbrex doctor` starts this in place of each rank: it prints, as one line of JSON, what the
launcher has left to the rank."""
import json
import os
import resource
import sys

MARK = "imbrex-doctor-rank "
RANKS = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID")
LIMITS = {"ulimit -s": resource.RLIMIT_STACK, "ulimit -v": resource.RLIMIT_AS,
          "ulimit -u": resource.RLIMIT_NPROC}


def rank():
    values = [os.environ[name] for name in RANKS if os.environ.get(name, "").isdigit()]
    return int(values[0]) if values else 0


def shared_memory():
    """Identifies the folder in which ranks share memory; "" if this rank cannot write there."""
    if not os.access("/dev/shm", os.W_OK):
        return ""
    there = os.stat("/dev/shm")
    return f"{there.st_dev}:{there.st_ino}"


def process_space():
    """Identifies the PID namespace; "" if the system does not say."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def main():
    told = {"rank": rank(), "host": os.uname().nodename, "present": os.cpu_count() or 1,
            "allowed": sorted(os.sched_getaffinity(0)),
            "shared_memory": shared_memory(), "process_space": process_space(),
            "limits": {name: resource.getrlimit(which)[0] for name, which in LIMITS.items()},
            "variables": {name: value for name, value in os.environ.items()
                          if name.startswith("IMBREX_")}}
    # One write: lines of several ranks do not mix.
    sys.stdout.write(f"{MARK}{json.dumps(told, separators=(',', ':'))}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
