! SPDX-License-Identifier: BSD-3-Clause
! A program as they are written for TAMPI, in Fortran with the module mpi: tasks that exchange with
! the neighbours, statuses that are written late, constants that are known by their address, and
! every collective. On two ranks.
#include "TAMPIf.h"

module fortran_test_bodies
  use mpi
  use imbrex
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: rank, ranks, left, right
  integer, parameter :: count = 40
  integer, target :: in(count), out(count)
  integer :: statuses(MPI_STATUS_SIZE, count)
  integer, target :: sums(2)
  integer, target :: from(2), to(2)
  logical :: used = .false.
contains
  subroutine check(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what
    integer :: code
    if (holds) return
    print '(a,i0,2a)', "rank ", rank, ": not true: ", what
    call MPI_Abort(MPI_COMM_WORLD, 1, code)
  end subroutine

  ! The first half by TAMPI_Iwaitall, with a null request among them, the others one by one.
  integer(c_int) function receive_all(argument, result) bind(C, name="")
    type(c_ptr), value :: argument, result
    integer :: requests(count), i, code
    do i = 2, count / 2
      call MPI_Irecv(in(i), 1, MPI_INTEGER, left, i, MPI_COMM_WORLD, requests(i), code)
    end do
    requests(1) = MPI_REQUEST_NULL
    call TAMPI_Iwaitall(count / 2, requests, statuses, code)
    call check(code == MPI_SUCCESS, "TAMPI_Iwaitall succeeds")
    call check(all(requests(1:count / 2) == MPI_REQUEST_NULL), "all requests are null")
    do i = count / 2 + 1, count - 1
      call TAMPI_Irecv(in(i), 1, MPI_INTEGER, left, i, MPI_COMM_WORLD, requests(i), &
        statuses(1, i), code)
      call check(code == MPI_SUCCESS, "TAMPI_Irecv succeeds")
      call check(requests(i) == MPI_REQUEST_NULL, "its request is null")
    end do
    call TAMPI_Irecv(in(count), 1, MPI_INTEGER, left, count, MPI_COMM_WORLD, requests(count), &
      MPI_STATUS_IGNORE, code)
    call MPI_Irecv(in(1), 1, MPI_INTEGER, left, 1, MPI_COMM_WORLD, requests(1), code)
    call TAMPI_Iwait(requests(1), statuses(1, 1), code)
    call check(code == MPI_SUCCESS, "TAMPI_Iwait succeeds")
    call TAMPI_Waitall(count, requests, MPI_STATUSES_IGNORE, code)
    call check(code == MPI_SUCCESS, "TAMPI_Waitall has nothing to do")
    call c_nothing(argument, result)
    receive_all = 0
  end function

  integer(c_int) function use_it(argument, result) bind(C, name="")
    type(c_ptr), value :: argument, result
    integer :: i
    do i = 1, count
      call check(in(i) == 100 * left + i, "the message is there")
      if (i == count) exit
      call check(statuses(MPI_TAG, i) == i, "its status has the tag")
      call check(statuses(MPI_SOURCE, i) == left, "its status has the source")
    end do
    used = .true.
    call c_nothing(argument, result)
    use_it = 0
  end function

  integer(c_int) function send_all(argument, result) bind(C, name="")
    type(c_ptr), value :: argument, result
    integer :: request, i, code
    do i = 1, count
      out(i) = 100 * rank + i
      select case (mod(i, 3))
      case (0)
        call TAMPI_Isend(out(i), 1, MPI_INTEGER, right, i, MPI_COMM_WORLD, request, code)
      case (1)
        call TAMPI_Issend(out(i), 1, MPI_INTEGER, right, i, MPI_COMM_WORLD, request, code)
      case (2)
        call MPI_Isend(out(i), 1, MPI_INTEGER, right, i, MPI_COMM_WORLD, request, code)
        call TAMPI_Iwait(request, MPI_STATUS_IGNORE, code)
      end select
      call check(code == MPI_SUCCESS .and. request == MPI_REQUEST_NULL, "the send is bound")
    end do
    call c_nothing(argument, result)
    send_all = 0
  end function

  integer(c_int) function add_up(argument, result) bind(C, name="")
    type(c_ptr), value :: argument, result
    integer :: request, code
    sums = [rank, 1]
    call TAMPI_Iallreduce(MPI_IN_PLACE, sums, 2, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request, &
      code)
    call check(code == MPI_SUCCESS .and. request == MPI_REQUEST_NULL, "the sum is bound")
    call c_nothing(argument, result)
    add_up = 0
  end function

  ! A body may ignore its arguments.
  subroutine c_nothing(argument, result)
    type(c_ptr), intent(in) :: argument, result
    if (c_associated(argument) .or. c_associated(result)) return
  end subroutine

  ! ---- collectives: one body for each, by number, and what `to` is then ----

  integer(c_int) function collective(argument, result) bind(C, name="")
    type(c_ptr), value :: argument, result
    integer, pointer :: which
    integer :: request, code
    integer, parameter :: ones(2) = 1, places(2) = [0, 1], types(2) = MPI_INTEGER
    integer :: bytes(2)
    call c_f_pointer(argument, which)
    from = [10 * rank, 10 * rank + 1]
    to = -1
    bytes = 4 * places
    request = -1
    select case (which)
    case (1)
      to(1) = 10 * rank
      call TAMPI_Ibcast(to, 1, MPI_INTEGER, 1, MPI_COMM_WORLD, request, code)
    case (2)
      call TAMPI_Igather(from, 1, MPI_INTEGER, to, 1, MPI_INTEGER, 1, MPI_COMM_WORLD, request, code)
    case (3)
      call TAMPI_Igatherv(from, 1, MPI_INTEGER, to, ones, places, MPI_INTEGER, 1, MPI_COMM_WORLD, &
        request, code)
    case (4)
      call TAMPI_Iscatter(from, 1, MPI_INTEGER, to, 1, MPI_INTEGER, 1, MPI_COMM_WORLD, request, &
        code)
    case (5)
      call TAMPI_Iscatterv(from, ones, places, MPI_INTEGER, to, 1, MPI_INTEGER, 1, MPI_COMM_WORLD, &
        request, code)
    case (6)
      call TAMPI_Iallgather(from, 1, MPI_INTEGER, to, 1, MPI_INTEGER, MPI_COMM_WORLD, request, code)
    case (7)
      call TAMPI_Iallgatherv(from, 1, MPI_INTEGER, to, ones, places, MPI_INTEGER, MPI_COMM_WORLD, &
        request, code)
    case (8)
      call TAMPI_Ialltoall(from, 1, MPI_INTEGER, to, 1, MPI_INTEGER, MPI_COMM_WORLD, request, code)
    case (9)
      call TAMPI_Ialltoallv(from, ones, places, MPI_INTEGER, to, ones, places, MPI_INTEGER, &
        MPI_COMM_WORLD, request, code)
    case (10)
      call TAMPI_Ialltoallw(from, ones, bytes, types, to, ones, bytes, types, MPI_COMM_WORLD, &
        request, code)
    case (11)
      call TAMPI_Ireduce(from, to, 2, MPI_INTEGER, MPI_MAX, 1, MPI_COMM_WORLD, request, code)
    case (12)
      call TAMPI_Ireduce_scatter(from, to, ones, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request, &
        code)
    case (13)
      call TAMPI_Ireduce_scatter_block(from, to, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request, &
        code)
    case (14)
      call TAMPI_Iscan(from, to, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request, code)
    case (15)
      call TAMPI_Iexscan(from, to, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request, code)
    case default
      call TAMPI_Ibarrier(MPI_COMM_WORLD, request, code)
    end select
    call check(code == MPI_SUCCESS .and. request == MPI_REQUEST_NULL, "the collective is bound")
    call c_nothing(argument, result)
    collective = 0
  end function

  integer(c_int) function check_collective(argument, result) bind(C, name="")
    type(c_ptr), value :: argument, result
    integer, pointer :: which
    integer :: expected(2)
    call c_f_pointer(argument, which)
    expected = -1
    select case (which)
    case (1)
      expected(1) = 10
    case (2, 3)
      if (rank == 1) expected = [0, 10]
    case (4, 5)
      expected(1) = 10 + rank
    case (6, 7)
      expected = [0, 10]
    case (8:10)
      expected = [rank, 10 + rank]
    case (11)
      if (rank == 1) expected = [10, 11]
    case (12, 13)
      expected(1) = 10 + 2 * rank
    case (14)
      expected(1) = 10 * rank
    case (15)
      if (rank == 1) expected(1) = 0
      if (rank == 0) to(1) = -1  ! undefined
    end select
    call check(all(to == expected), "the collective has its result")
    call c_nothing(argument, result)
    check_collective = 0
  end function
end module

program fortran_test
  use fortran_test_bodies
  implicit none
  integer :: provided, level, flag, code, i
  type(c_ptr) :: finish
  integer, target :: numbers(16)

  call TAMPI_Property_get(TAMPI_PROPERTY_AUTO_INIT, flag, code)
  call check(code == MPI_SUCCESS .and. flag == 1, "MPI_Init starts TAMPI")
  call MPI_Init_thread(MPI_TASK_MULTIPLE, provided, code)
  call check(code == MPI_SUCCESS .and. provided == MPI_TASK_MULTIPLE, "MPI_TASK_MULTIPLE is given")
  call MPI_Query_thread(level, code)
  call check(level == MPI_TASK_MULTIPLE, "MPI_Query_thread says so too")
  call TAMPI_Blocking_enabled(flag, code)
  call check(flag == 1, "the blocking mode is enabled")
  call TAMPI_Nonblocking_enabled(flag, code)
  call check(flag == 1, "the non-blocking mode is enabled")
  call TAMPI_Property_set(TAMPI_PROPERTY_AUTO_INIT, 0, code)
  call check(code == MPI_ERR_ARG, "AUTO_INIT cannot be set any more")
  call TAMPI_Init(MPI_TASK_MULTIPLE, provided, code)
  call check(code == MPI_SUCCESS .and. provided == MPI_TASK_MULTIPLE, "TAMPI_Init gives it too")
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, code)
  left = mod(rank + ranks - 1, ranks)
  right = mod(rank + 1, ranks)

  call imbrex_check(imbrex_finish_begin(finish))
  call imbrex_check(imbrex_spawn("receive", c_funloc(receive_all), &
    accesses=[imbrex_out(c_loc(in))]))
  call imbrex_check(imbrex_spawn("use", c_funloc(use_it), accesses=[imbrex_in(c_loc(in))]))
  call imbrex_check(imbrex_spawn("send", c_funloc(send_all), accesses=[imbrex_out(c_loc(out))]))
  call imbrex_check(imbrex_spawn("add up", c_funloc(add_up), accesses=[imbrex_out(c_loc(sums))]))
  call imbrex_check(imbrex_finish_end(finish))
  call check(used, "the dependent has run")
  call check(sums(1) == ranks * (ranks - 1) / 2 .and. sums(2) == ranks, "the sums are right")

  if (ranks == 2) then
    call imbrex_check(imbrex_finish_begin(finish))
    do i = 1, size(numbers)
      numbers(i) = i
      call imbrex_check(imbrex_spawn("collective", c_funloc(collective), c_loc(numbers(i)), &
        [imbrex_inout(c_loc(to))]))
      call imbrex_check(imbrex_spawn("check", c_funloc(check_collective), c_loc(numbers(i)), &
        [imbrex_inout(c_loc(to))]))
    end do
    call imbrex_check(imbrex_finish_end(finish))
  end if
  call MPI_Finalize(code)
  if (rank == 0) print '(a,i0,a)', "all is well on ", ranks, " ranks"
contains
  subroutine imbrex_check(its_code)
    integer(c_int), intent(in) :: its_code
    if (its_code /= IMBREX_SUCCESS) print '(a)', imbrex_message()
    call check(its_code == IMBREX_SUCCESS, "imbrex succeeds")
  end subroutine
end program
