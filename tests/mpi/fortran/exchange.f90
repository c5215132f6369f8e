! SPDX-License-Identifier: BSD-3-Clause
! Fortran's calls of MPI in tasks: built once with mpif.h, once with `use mpi`, once with mpi_f08.
! Each rank creates its receives before its sends, and has one worker: unless a blocking receive
! suspends its task, no message is ever sent. The constants that Fortran passes by address are used
! in each call that takes one.
#ifdef BINDING_F08
#define STATUS_OF type(MPI_Status)
#define SOURCE(status) status%MPI_SOURCE
#define TAG(status) status%MPI_TAG
#define REQUEST_OF type(MPI_Request)
#define HANDLE(request) request%MPI_VAL
#define TYPE_OF type(MPI_Datatype)
#define COMM_OF type(MPI_Comm)
#else
#define STATUS_OF integer, dimension(MPI_STATUS_SIZE)
#define SOURCE(status) status(MPI_SOURCE)
#define TAG(status) status(MPI_TAG)
#define REQUEST_OF integer
#define HANDLE(request) request
#define TYPE_OF integer
#define COMM_OF integer
#endif
#if defined BINDING_F08
#define USE_MPI use mpi_f08
#elif defined BINDING_MODULE
#define USE_MPI use mpi
#else
#define USE_MPI
#endif

module bodies
  USE_MPI
  use imbrex
  use imbrex_mpi
  use, intrinsic :: iso_c_binding
  implicit none
#ifdef BINDING_MPIF
  include 'mpif.h'
#endif
  integer, parameter :: messages = 8
  integer :: rank = 0, ranks = 1, following = 0, previous = 0, code = 0
  integer, target, asynchronous :: arriving = -1
contains
  subroutine expect(right, what)
    logical, intent(in) :: right
    character(*), intent(in) :: what
    if (right) return
    print '(a,i0,a,a)', "exchange: wrong on rank ", rank, ": ", what
    call MPI_Abort(MPI_COMM_WORLD, 1, code)
  end subroutine

  integer(c_int) function receive_one(argument, result) bind(C, name="")
    type(c_ptr), value :: argument, result
    integer(c_int), pointer :: number
    integer :: value(3), error
    STATUS_OF :: status
    call c_f_pointer(argument, number)
    if (mod(number, 2) == 0) then
      call MPI_Recv(value, 3, MPI_INTEGER, previous, int(number), MPI_COMM_WORLD, status, error)
      call expect(SOURCE(status) == previous .and. TAG(status) == number, "a status")
    else
      call MPI_Recv(value, 3, MPI_INTEGER, MPI_ANY_SOURCE, int(number), MPI_COMM_WORLD, &
        MPI_STATUS_IGNORE, error)
    end if
    call expect(error == MPI_SUCCESS .and. all(value == [previous, int(number), 7]), "a message")
    receive_one = merge(0, 1, .not. c_associated(result))
  end function

  integer(c_int) function send_one(argument, result) bind(C, name="")
    type(c_ptr), value :: argument, result
    integer(c_int), pointer :: number
    integer :: value(3), error
    call c_f_pointer(argument, number)
    value = [rank, int(number), 7]
    call MPI_Ssend(value, 3, MPI_INTEGER, following, int(number), MPI_COMM_WORLD, error)
    send_one = merge(0, 1, .not. c_associated(result))
  end function

  ! Waits for several, with and without statuses, and for some that MPI chooses.
  integer(c_int) function wait_for_several(argument, result) bind(C, name="")
    type(c_ptr), value :: argument, result
    integer, asynchronous :: in(4), out(4)
    integer :: i, error, index
    REQUEST_OF :: requests(8)
#ifdef BINDING_F08
    type(MPI_Status) :: statuses(8)
#else
    integer :: statuses(MPI_STATUS_SIZE, 8)
#endif
    wait_for_several = merge(0, 1, .not. c_associated(result))
    if (c_associated(argument)) wait_for_several = 1
    do i = 1, 4
      out(i) = 10 * rank + i
      call MPI_Irecv(in(i), 1, MPI_INTEGER, previous, 100 + i, MPI_COMM_WORLD, requests(i), error)
      call MPI_Isend(out(i), 1, MPI_INTEGER, following, 100 + i, MPI_COMM_WORLD, requests(4 + i), &
        error)
    end do
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE, error)
    call MPI_Waitany(3, requests(2:4), index, MPI_STATUS_IGNORE, error)
    ! The index counts from 1; but mpi_f08 of MPICH 4.0 counts from 0, without imbrex too.
    call expect(index >= 0 .and. index <= 3, "the index of a request")
    call MPI_Waitall(8, requests, statuses, error)
    call expect(all(in == [(10 * previous + i, i = 1, 4)]), "several messages")
    call MPI_Irecv(in(1), 1, MPI_INTEGER, previous, 105, MPI_COMM_WORLD, requests(1), error)
    call MPI_Isend(out(1), 1, MPI_INTEGER, following, 105, MPI_COMM_WORLD, requests(2), error)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, error)
    call expect(in(1) == 10 * previous + 1, "a message without a status")
  end function

  ! Ends at once; what depends on it runs when the message is there.
  integer(c_int) function receive_later(argument, result) bind(C, name="")
    type(c_ptr), value :: argument, result
    integer :: error
    REQUEST_OF :: request
    call MPI_Irecv(arriving, 1, MPI_INTEGER, previous, 300, MPI_COMM_WORLD, request, error)
    receive_later = imbrex_release_after_request(HANDLE(request))
    call expect(.not. c_associated(argument) .and. .not. c_associated(result), "no argument")
  end function

  integer(c_int) function look_at_it(argument, result) bind(C, name="")
    type(c_ptr), value :: argument, result
    call expect(arriving == 300 + previous, "a message that is bound to a task")
    look_at_it = merge(0, 1, .not. c_associated(argument) .and. .not. c_associated(result))
  end function

  ! Sends and waits with a status, and by a future.
  integer(c_int) function send_and_wait(argument, result) bind(C, name="")
    type(c_ptr), value :: argument, result
    integer, asynchronous :: value, other
    integer :: error, status(MPI_STATUS_SIZE)
    type(c_ptr) :: sent
    REQUEST_OF :: request, send_request
    value = 300 + rank
    call MPI_Issend(value, 1, MPI_INTEGER, following, 300, MPI_COMM_WORLD, send_request, error)
    send_and_wait = imbrex_when_request(HANDLE(send_request), sent)
    send_and_wait = send_and_wait + imbrex_future_wait(sent)
    call imbrex_future_free(sent)
    call MPI_Irecv(other, 1, MPI_INTEGER, previous, 301, MPI_COMM_WORLD, request, error)
    call MPI_Ssend(value, 1, MPI_INTEGER, following, 301, MPI_COMM_WORLD, error)
    send_and_wait = send_and_wait + imbrex_await_request(HANDLE(request), status)
    call expect(status(MPI_TAG) == 301 .and. status(MPI_SOURCE) == previous, "a status awaited")
    call expect(other == 300 + previous, "a message awaited")
    call expect(.not. c_associated(argument) .and. .not. c_associated(result), "no argument")
  end function
end module

program exchange
  use bodies
  implicit none
  integer(c_int), target :: numbers(messages)
  type(c_ptr) :: finish
  integer :: i, provided
#ifdef BINDING_MPIF
  call MPI_Init(code)
#else
  call MPI_Init_thread(MPI_THREAD_MULTIPLE, provided, code)
#endif
  call MPI_Query_thread(provided, code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, code)
  call expect(provided == MPI_THREAD_MULTIPLE, "the thread level")
  following = mod(rank + 1, ranks)
  previous = mod(rank + ranks - 1, ranks)

  numbers = [(i, i = 1, messages)]
  call check(imbrex_finish_begin(finish))
  do i = 1, messages
    call check(imbrex_spawn("receive", c_funloc(receive_one), c_loc(numbers(i))))
  end do
  do i = 1, messages
    call check(imbrex_spawn("send", c_funloc(send_one), c_loc(numbers(i))))
  end do
  call check(imbrex_spawn("wait for several", c_funloc(wait_for_several)))
  call check(imbrex_spawn("receive later", c_funloc(receive_later), &
    accesses=[imbrex_out(c_loc(arriving))]))
  call check(imbrex_spawn("look at it", c_funloc(look_at_it), &
    accesses=[imbrex_in(c_loc(arriving))]))
  call check(imbrex_spawn("send and wait", c_funloc(send_and_wait)))
  call check(imbrex_finish_end(finish))

  call in_main()
  call expect(scan(imbrex_version(), ".") > 1, "the version")
  call MPI_Barrier(MPI_COMM_WORLD, code)
  if (rank == 0) print '(a,i0,a)', "exchange: ", ranks, " ranks, all right"
  call MPI_Finalize(code)
contains
  subroutine check(code)
    integer(c_int), intent(in) :: code
    if (code == IMBREX_SUCCESS) return
    print '(a)', imbrex_message()
    error stop 1
  end subroutine

  ! MPI_IN_PLACE, MPI_BOTTOM, MPI_UNWEIGHTED, sections of arrays.
  subroutine in_main()
    integer :: sums(2), values(2), neighbours(1), far(6), i
    integer(MPI_ADDRESS_KIND) :: place(1)
    TYPE_OF :: there
    COMM_OF :: graph
    REQUEST_OF :: request
    sums = [rank, 1]
    call MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)
    call expect(all(sums == [ranks * (ranks - 1) / 2, ranks]), "a sum in place")

    values = [rank, 3]
    call MPI_Get_address(values, place(1), code)
    call MPI_Type_create_hindexed(1, [2], place, MPI_INTEGER, there, code)
    call MPI_Type_commit(there, code)
    call MPI_Irecv(sums, 2, MPI_INTEGER, previous, 200, MPI_COMM_WORLD, request, code)
    call MPI_Send(MPI_BOTTOM, 1, there, following, 200, MPI_COMM_WORLD, code)
    call MPI_Wait(request, MPI_STATUS_IGNORE, code)
    call expect(all(sums == [previous, 3]), "a message from MPI_BOTTOM")
    call MPI_Type_free(there, code)

    call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, [previous], MPI_UNWEIGHTED, 1, &
      [following], MPI_UNWEIGHTED, MPI_INFO_NULL, .false., graph, code)
    call MPI_Neighbor_allgather([rank], 1, MPI_INTEGER, neighbours, 1, MPI_INTEGER, graph, code)
    call expect(neighbours(1) == previous, "a message of a neighbour")
    call MPI_Comm_free(graph, code)

#ifdef BINDING_F08
    if (MPI_SUBARRAYS_SUPPORTED) then
      far = [(100 * rank + i, i = 1, 6)]
      call MPI_Irecv(far(2:6:2), 3, MPI_INTEGER, previous, 201, MPI_COMM_WORLD, request, code)
      call MPI_Send(far(1:5:2), 3, MPI_INTEGER, following, 201, MPI_COMM_WORLD, code)
      call MPI_Wait(request, MPI_STATUS_IGNORE, code)
      call expect(all(far(2:6:2) == [(100 * previous + 2 * i - 1, i = 1, 3)]), "a section")
    end if
#else
    far = 0
#endif
  end subroutine
end program
