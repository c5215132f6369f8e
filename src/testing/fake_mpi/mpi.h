// SPDX-License-Identifier: BSD-3-Clause
// MPI 3.1 of one process, for tests: src/mpi is compiled against it a second time. Only for C++.
// Its constants and handles equal those of no real MPI, and handles are numbers that are never
// reused (unless a test asks for it): code that relies on one MPI's values, or uses a handle too
// late, fails.
#pragma once

#define MPI_VERSION 3
#define MPI_SUBVERSION 1
#define FAKE_MPI_HANDLE(type) typedef struct fake_mpi_##type* MPI_##type

typedef long MPI_Aint;
typedef long MPI_Count;
typedef long MPI_Offset;
typedef int MPI_Fint;
FAKE_MPI_HANDLE(Comm);
FAKE_MPI_HANDLE(Request);
FAKE_MPI_HANDLE(Message);
FAKE_MPI_HANDLE(Datatype);
FAKE_MPI_HANDLE(Op);
FAKE_MPI_HANDLE(Errhandler);
FAKE_MPI_HANDLE(Group);
FAKE_MPI_HANDLE(Info);
FAKE_MPI_HANDLE(Win);
FAKE_MPI_HANDLE(File);

typedef struct {
  MPI_Count fake_bytes;
  int MPI_TAG;
  int MPI_ERROR;
  int MPI_SOURCE;
  int fake_cancelled;
} MPI_Status;

#define MPI_COMM_NULL ((MPI_Comm)0x100)
#define MPI_COMM_WORLD ((MPI_Comm)0x101)
#define MPI_COMM_SELF ((MPI_Comm)0x102)
#define MPI_REQUEST_NULL ((MPI_Request)0x110)
#define MPI_MESSAGE_NULL ((MPI_Message)0x120)
#define MPI_MESSAGE_NO_PROC ((MPI_Message)0x121)
#define MPI_GROUP_NULL ((MPI_Group)0x130)
#define MPI_GROUP_EMPTY ((MPI_Group)0x131)
#define MPI_INFO_NULL ((MPI_Info)0x140)
#define MPI_INFO_ENV ((MPI_Info)0x141)
#define MPI_ERRHANDLER_NULL ((MPI_Errhandler)0x150)
#define MPI_ERRORS_ARE_FATAL ((MPI_Errhandler)0x151)
#define MPI_ERRORS_RETURN ((MPI_Errhandler)0x152)
#define MPI_WIN_NULL ((MPI_Win)0x160)
#define MPI_FILE_NULL ((MPI_File)0x170)
#define MPI_OP_NULL ((MPI_Op)0x180)
#define MPI_MAX ((MPI_Op)0x181)
#define MPI_MIN ((MPI_Op)0x182)
#define MPI_SUM ((MPI_Op)0x183)
#define MPI_LAND ((MPI_Op)0x184)
#define MPI_LOR ((MPI_Op)0x185)
#define MPI_BAND ((MPI_Op)0x186)
#define MPI_BOR ((MPI_Op)0x187)
#define MPI_PROD ((MPI_Op)0x189)
#define MPI_LXOR ((MPI_Op)0x18a)
#define MPI_BXOR ((MPI_Op)0x18b)
#define MPI_MAXLOC ((MPI_Op)0x18c)
#define MPI_MINLOC ((MPI_Op)0x18d)
#define MPI_NO_OP ((MPI_Op)0x188)

// A predefined type contains its size: 0x10000 + 256 x number + bytes.
#define FAKE_MPI_TYPE(number, bytes) ((MPI_Datatype)(0x10000 + 256 * (number) + (bytes)))
#define MPI_DATATYPE_NULL ((MPI_Datatype)0x190)
#define MPI_BYTE FAKE_MPI_TYPE(1, 1)
#define MPI_PACKED FAKE_MPI_TYPE(2, 1)
#define MPI_CHAR FAKE_MPI_TYPE(3, 1)
#define MPI_SIGNED_CHAR FAKE_MPI_TYPE(4, 1)
#define MPI_UNSIGNED_CHAR FAKE_MPI_TYPE(5, 1)
#define MPI_SHORT FAKE_MPI_TYPE(6, 2)
#define MPI_INT FAKE_MPI_TYPE(7, 4)
#define MPI_UNSIGNED FAKE_MPI_TYPE(8, 4)
#define MPI_LONG FAKE_MPI_TYPE(9, 8)
#define MPI_UNSIGNED_LONG FAKE_MPI_TYPE(10, 8)
#define MPI_LONG_LONG FAKE_MPI_TYPE(11, 8)
#define MPI_UNSIGNED_LONG_LONG FAKE_MPI_TYPE(12, 8)
#define MPI_FLOAT FAKE_MPI_TYPE(13, 4)
#define MPI_DOUBLE FAKE_MPI_TYPE(14, 8)
#define MPI_AINT FAKE_MPI_TYPE(15, 8)
#define MPI_COUNT FAKE_MPI_TYPE(16, 8)
#define MPI_UINT32_T FAKE_MPI_TYPE(17, 4)
#define MPI_UINT64_T FAKE_MPI_TYPE(18, 8)
#define MPI_INT32_T FAKE_MPI_TYPE(19, 4)
#define MPI_INT64_T FAKE_MPI_TYPE(20, 8)

#define MPI_STATUS_IGNORE ((MPI_Status*)1)
#define MPI_STATUSES_IGNORE ((MPI_Status*)2)
#define MPI_IN_PLACE ((void*)3)
#define MPI_BOTTOM ((void*)0)
#define MPI_ANY_SOURCE (-71)
#define MPI_ANY_TAG (-83)
#define MPI_PROC_NULL (-97)
#define MPI_ROOT (-101)
#define MPI_UNDEFINED (-32123)
#define MPI_KEYVAL_INVALID (-61)
#define MPI_TAG_UB 51
#define MPI_UNIVERSE_SIZE 52
#define MPI_BSEND_OVERHEAD 64
#define MPI_MAX_ERROR_STRING 120
#define MPI_MAX_LIBRARY_VERSION_STRING 120
#define MPI_MAX_PROCESSOR_NAME 120
#define MPI_MAX_OBJECT_NAME 64
#define MPI_MAX_INFO_KEY 64
#define MPI_MAX_INFO_VAL 256
#define MPI_MAX_PORT_NAME 256
enum { MPI_IDENT = 31, MPI_CONGRUENT, MPI_SIMILAR, MPI_UNEQUAL };
enum { MPI_COMM_TYPE_SHARED = 41 };
enum { MPI_CART = 45, MPI_GRAPH, MPI_DIST_GRAPH };
#define MPI_UNWEIGHTED ((int*)2)
enum { MPI_COMBINER_NAMED = 21, MPI_COMBINER_DUP, MPI_COMBINER_CONTIGUOUS };
enum {
  MPI_THREAD_SINGLE = 200,
  MPI_THREAD_FUNNELED = 210,
  MPI_THREAD_SERIALIZED = 220,
  MPI_THREAD_MULTIPLE = 230
};
enum {
  MPI_SUCCESS,
  MPI_ERR_BUFFER = 301,
  MPI_ERR_COUNT,
  MPI_ERR_TYPE,
  MPI_ERR_TAG,
  MPI_ERR_COMM,
  MPI_ERR_RANK,
  MPI_ERR_REQUEST,
  MPI_ERR_ROOT,
  MPI_ERR_GROUP,
  MPI_ERR_OP,
  MPI_ERR_ARG,
  MPI_ERR_UNKNOWN,
  MPI_ERR_TRUNCATE,
  MPI_ERR_OTHER,
  MPI_ERR_INTERN,
  MPI_ERR_IN_STATUS,
  MPI_ERR_PENDING,
  MPI_ERR_NO_MEM,
  MPI_ERR_KEYVAL,
  MPI_ERR_INFO_VALUE,
  MPI_ERR_UNSUPPORTED_OPERATION,
  MPIX_ERR_PROC_FAILED,
  MPIX_ERR_PROC_FAILED_PENDING,
  MPI_ERR_LASTCODE
};

#pragma GCC visibility push(default)
extern "C" {

typedef void MPI_Comm_errhandler_function(MPI_Comm*, int*, ...);
typedef void MPI_File_errhandler_function(MPI_File*, int*, ...);
typedef void MPI_Win_errhandler_function(MPI_Win*, int*, ...);
typedef int MPI_Comm_copy_attr_function(MPI_Comm, int, void*, void*, void*, int*);
typedef int MPI_Comm_delete_attr_function(MPI_Comm, int, void*, void*);
typedef int MPI_Grequest_query_function(void*, MPI_Status*);
typedef int MPI_Grequest_free_function(void*);
typedef int MPI_Grequest_cancel_function(void*, int);
typedef void MPI_User_function(void*, void*, int*, MPI_Datatype*);
#define MPI_COMM_NULL_COPY_FN ((MPI_Comm_copy_attr_function*)0)
#define MPI_COMM_NULL_DELETE_FN ((MPI_Comm_delete_attr_function*)0)
#define MPI_COMM_DUP_FN (&fake_mpi_copy_attribute)
int fake_mpi_copy_attribute(MPI_Comm, int, void*, void*, void*, int*);

#define FAKE_MPI(name, parameters, arguments) \
  int PMPI_##name parameters;                 \
  int MPI_##name parameters;
#include "functions.def"

#define FAKE_MPI_MISSING(name) int PMPI_##name(...);
#include "unsimulated.def"

double MPI_Wtime(void);
double PMPI_Wtime(void);
MPI_Fint MPI_Request_c2f(MPI_Request request);
MPI_Fint PMPI_Request_c2f(MPI_Request request);
MPI_Request MPI_Request_f2c(MPI_Fint number);
MPI_Request PMPI_Request_f2c(MPI_Fint number);
MPI_Fint PMPI_Comm_c2f(MPI_Comm comm);
MPI_Comm PMPI_Comm_f2c(MPI_Fint number);
int MPIX_Comm_get_failed(MPI_Comm comm, MPI_Group* group);  // for code that finds it by its name

}  // extern "C"
#pragma GCC visibility pop

#undef FAKE_MPI_HANDLE

// For src/mpi, in place of what export_calls.py makes for a real MPI: our functions are those that
// programs see, and replace the weak ones. So nobody is told of calls here (observed.py).
#define IMBREX_FUNCTION(name) extern "C" int MPI_##name
