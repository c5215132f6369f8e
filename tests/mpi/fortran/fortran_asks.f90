! SPDX-License-Identifier: BSD-3-Clause
! A loop on MPI_Test in a task, with one worker: the message that it asks for is sent by a task of
! each rank that has not begun.
module asking_bodies
  use, intrinsic :: iso_c_binding
  use mpi
  use imbrex
  implicit none
  integer :: previous = 0, next = 0
contains
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

program asks
  use asking_bodies
  implicit none
  integer, target :: rank = 0, asked = -1
  integer :: ranks, all, error
  type(c_ptr) :: finish
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  next = mod(rank + 1, ranks)
  previous = mod(rank + ranks - 1, ranks)
  call check(imbrex_finish_begin(finish))
  call check(imbrex_spawn("ask", c_funloc(ask), c_loc(asked)))
  call check(imbrex_spawn("send", c_funloc(send), c_loc(rank)))
  call check(imbrex_finish_end(finish))
  call MPI_Allreduce(asked, all, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
  if (asked /= previous) call MPI_Abort(MPI_COMM_WORLD, 1, error)
  if (rank == 0) print '(a,i0)', "the numbers of the ranks add up to ", all
  call MPI_Finalize(error)
contains
  subroutine check(code)
    integer(c_int), intent(in) :: code
    integer :: error
    if (code == IMBREX_SUCCESS) return
    print '(a)', imbrex_message()
    call MPI_Abort(MPI_COMM_WORLD, 1, error)
  end subroutine
end program
