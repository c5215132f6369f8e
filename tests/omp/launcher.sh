#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# launcher.sh <libgomp.so.1>: a shell under the library may use as many processors as without it.
ask='grep Cpus_allowed_list /proc/self/status'
alone=$(sh -c "$ask")
preloaded=$(LD_PRELOAD=$1 sh -c "$ask" 2>&1)
echo "$preloaded"
test "$preloaded" = "$alone"
