#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# with_mpi4py.sh PYTHON COMMAND...: runs COMMAND if PYTHON is there, else skips the test.
[ -x "$1" ] || { echo "there is no $1: tools/install_mpi mpi4py"; exit 77; }
shift
exec "$@"
