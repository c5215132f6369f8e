#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that calls.def is complete: every function that the MPI's header declares stands in the
table or, if it cannot block, in the lists below; the library defines all of the table that
the header declares; and a test of this folder makes each of these calls.

check_table.py --compiler <cc> --include <dir>... --library <libimbrex_mpi.so> [--also <function>]
"""
import argparse
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent

# Functions of objects that no other process sees, and conversions.
LOCAL_FAMILIES = re.compile(
    r"MPI_(T|Type|Group|Info|Status|Error|Abi|Errhandler|Op|Add_error|Remove_error|Attr|Keyval)_\w+"
    r"|MPI_\w+_(f2c|c2f|f082f|f2f08|f082c|c2f08|toint|fromint)"
    r"|MPI_W(time|tick)|MPI_Aint_(add|diff)")

# Local by the standard, or they only start something. Comm_free, Comm_set_info and Session_init may
# wait for others by the letter of the standard, and do so in no MPI; Finalize completes the tasks
# first and then is MPI's own.
CANNOT_BLOCK = set("""
Abort Accumulate Address Alloc_mem Bsend_init Buffer_attach Cancel Cart_coords Cart_get Cart_map
Cart_rank Cart_shift Cartdim_get Close_port Comm_attach_buffer Comm_call_errhandler Comm_compare
Comm_create_errhandler Comm_create_keyval Comm_delete_attr Comm_free Comm_free_keyval Comm_get_attr
Comm_get_errhandler Comm_get_info Comm_get_name Comm_get_parent Comm_group Comm_rank
Comm_remote_group Comm_remote_size Comm_set_attr Comm_set_errhandler Comm_set_info Comm_set_name
Comm_size Comm_test_inter Compare_and_swap Dims_create Dist_graph_neighbors
Dist_graph_neighbors_count Fetch_and_op File_call_errhandler File_create_errhandler File_delete
File_get_amode File_get_atomicity File_get_byte_offset File_get_errhandler File_get_group
File_get_info File_get_position File_get_size File_get_type_extent File_get_view File_seek
File_set_errhandler Finalize Finalized Free_mem Get Get_accumulate Get_address Get_count
Get_elements Get_elements_x Get_hw_resource_info Get_library_version Get_processor_name Get_version
Graph_get Graph_map Graph_neighbors Graph_neighbors_count Graphdims_get Grequest_complete
Grequest_start Init Init_thread Initialized Is_thread_main Isendrecv Isendrecv_replace Open_port
Pack Pack_external Pack_external_size Pack_size Parrived Pcontrol Pready Pready_list Pready_range
Precv_init Psend_init Put Query_thread Raccumulate Recv_init Reduce_local Register_datarep
Request_free Request_get_status Request_get_status_all Request_get_status_any
Request_get_status_some Rget Rget_accumulate Rput Rsend_init Send_init Session_attach_buffer
Session_call_errhandler Session_create_errhandler Session_get_errhandler Session_get_info
Session_get_nth_pset Session_get_num_psets Session_get_pset_info Session_init Session_set_errhandler
Session_set_info Ssend_init Start Startall Test_cancelled Topo_test Unpack Unpack_external
Win_attach Win_call_errhandler Win_create_errhandler Win_create_keyval Win_delete_attr Win_detach
Win_free_keyval Win_get_attr Win_get_errhandler Win_get_group Win_get_info Win_get_name Win_post
Win_set_attr Win_set_errhandler Win_set_name Win_shared_query Win_sync Win_test
""".split())


def declared(compiler, includes):
    command = [compiler, "-E", "-P", "-xc", "-"] + [f"-I{one}" for one in includes]
    text = subprocess.run(command, input="#include <mpi.h>\n", capture_output=True, text=True,
                          check=True).stdout
    return set(re.findall(r"\b(?:int|double|MPI_\w+)\s+(MPI_[A-Z]\w*)\s*\(", text))


def read_table():
    lines = subprocess.run([sys.executable, ROOT / "src/mpi/calls/calls_doc.py", "--names"],
                           capture_output=True, text=True, check=True).stdout.splitlines()
    words = [line.split() for line in lines]
    calls = {name for kind, *names in words if kind == "call" for name in names}
    twins = {name for kind, *names in words if kind == "twin" for name in names}
    return calls, twins


def cannot_block(name):
    return LOCAL_FAMILIES.fullmatch(name) or re.sub("^MPI_|_c$", "", name) in CANNOT_BLOCK


def defined(library):
    text = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True,
                          check=True).stdout
    return set(re.findall(r" T (MPI_\w+)", text))


def called_in_tests():
    text = "".join(path.read_text() for path in HERE.glob("*.cpp"))
    names = {f"MPI_{name}" for name in re.findall(r"\bMPI_(\w+)", text)}
    # either_count.hpp makes these four of a collective.
    both = re.findall(r"\beither::(\w+)", text)
    return names | {f"MPI_{name}{end}" for name in both for end in ("", "_c", "_init", "_init_c")}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("--library", required=True)
    parser.add_argument("--also", help="as if the header declared this function too")
    arguments = parser.parse_args()

    header = declared(arguments.compiler, arguments.include)
    header |= {arguments.also} if arguments.also else set()
    calls, twins = read_table()
    if len(header & calls) < 100:
        sys.exit(f"check_table.py: mpi.h declares only {len(header & calls)} calls of the table: "
                 "was it read?")
    breaches = [f"{name}: may it block? Then it belongs in src/mpi/calls/calls.def, else into the "
                "list of this script"
                for name in sorted(header - calls - twins) if not cannot_block(name)]
    breaches += [f"{name}: in calls.def, but {arguments.library} does not define it"
                 for name in sorted((header & calls) - defined(arguments.library))]
    breaches += [f"{name}: in calls.def, but no test in tests/mpi/calls calls it"
                 for name in sorted((header & calls) - called_in_tests())]
    print("\n".join(breaches) or f"check_table.py: {len(header & calls)} calls")
    return 1 if breaches else 0


sys.exit(main())
