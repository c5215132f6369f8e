! SPDX-License-Identifier: BSD-3-Clause
! Calls of MPI in tasks: each rank receives from the rank before it, and sends to the next. The
! sending task has not begun when the receiving task waits, by a blocking call or by a loop on
! MPI_Test. The bodies have names of functions of C, which MPI itself calls.
module ring_bodies
  use, intrinsic :: iso_c_binding
  use mpi
  use imbrex
  implicit none
  integer :: previous = 0, next = 0
contains
  integer(c_int) function recv(argument, result) bind(C, name="")
    type(c_ptr), value :: argument, result
    integer, pointer :: number
    integer :: error
    call c_f_pointer(argument, number)
    call MPI_Recv(number, 1, MPI_INTEGER, previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
    recv = merge(error, -1, .not. c_associated(result))
  end function

  integer(c_int) function ask(argument, result) bind(C, name="")
    type(c_ptr), value :: argument, result
    integer, pointer :: number
    integer :: request, error
    logical :: done
    call c_f_pointer(argument, number)
    call MPI_Irecv(number, 1, MPI_INTEGER, previous, 0, MPI_COMM_WORLD, request, error)
    done = .false.
    do while (.not. done)
      call MPI_Test(request, done, MPI_STATUS_IGNORE, error)
    end do
    ask = merge(error, -1, .not. c_associated(result))
  end function

  integer(c_int) function send(argument, result) bind(C, name="")
    type(c_ptr), value :: argument, result
    integer, pointer :: number
    integer :: error
    call c_f_pointer(argument, number)
    call MPI_Ssend(number, 1, MPI_INTEGER, next, 0, MPI_COMM_WORLD, error)
    send = merge(error, -1, .not. c_associated(result))
  end function
end module

program fortran_ring
  use ring_bodies
  implicit none
  integer, target :: rank = 0, got
  integer :: ranks, all, error
  type(c_ptr) :: finish
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  next = mod(rank + 1, ranks)
  previous = mod(rank + ranks - 1, ranks)
  call pass_on("receive", c_funloc(recv))
  call pass_on("ask", c_funloc(ask))
  call MPI_Finalize(error)
contains
  subroutine pass_on(name, receiver)
    character(*), intent(in) :: name
    type(c_funptr), intent(in) :: receiver
    got = -1
    call check(imbrex_finish_begin(finish))
    call check(imbrex_spawn(name, receiver, c_loc(got)))
    call check(imbrex_spawn("send", c_funloc(send), c_loc(rank)))
    call check(imbrex_finish_end(finish))
    call MPI_Allreduce(got, all, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
    if (got /= previous) call MPI_Abort(MPI_COMM_WORLD, 1, error)
    if (rank == 0) print '(2a,i0)', name, ": the numbers of the ranks add up to ", all
  end subroutine

  subroutine check(code)
    integer(c_int), intent(in) :: code
    integer :: error
    if (code == IMBREX_SUCCESS) return
    print '(a)', imbrex_message()
    call MPI_Abort(MPI_COMM_WORLD, 1, error)
  end subroutine
end program
