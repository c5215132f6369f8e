! SPDX-License-Identifier: BSD-3-Clause
! imbrex/mpi.h for Fortran: requests, for tasks. A request is an integer, as with mpif.h and `use
! mpi`; with mpi_f08 give its MPI_VAL. Codes and messages as in the module imbrex.
module imbrex_mpi
  use, intrinsic :: iso_c_binding
  implicit none
  private
  public :: imbrex_await_request, imbrex_when_request, imbrex_release_after_request
  public :: imbrex_collective_order_begin, imbrex_collective_order_begin_by_name
  public :: imbrex_collective_order_begin_as_spawned, imbrex_collective_order_end

  interface
    integer(c_int) function c_await_request(request, status) &
        bind(C, name="imbrex_await_request_fortran")
      import
      integer, intent(inout) :: request
      type(c_ptr), value :: status
    end function
    ! Takes the request over, which becomes MPI_REQUEST_NULL, and returns at once: a future without
    ! a value that Fortran could use (imbrex_future_wait). Not for persistent requests.
    integer(c_int) function imbrex_when_request(request, future) &
        bind(C, name="imbrex_when_request_fortran")
      import
      integer, intent(inout) :: request
      type(c_ptr), intent(out) :: future
    end function
    ! Takes the request over: the running task, once its body has ended, keeps its dependents
    ! waiting for the request too.
    integer(c_int) function imbrex_release_after_request(request) &
        bind(C, name="imbrex_release_after_request_fortran")
      import
      integer, intent(inout) :: request
    end function
    ! Collectives between a beginning and an end start in an order that all ranks share.
    integer(c_int) function imbrex_collective_order_begin(key) &
        bind(C, name="imbrex_collective_order_begin")
      import
      integer(c_int64_t), value :: key
    end function
    integer(c_int) function c_begin_ordered_by_name(name) &
        bind(C, name="imbrex_collective_order_begin_by_name")
      import
      character(kind=c_char), intent(in) :: name(*)
    end function
    ! `object`: c_loc of what the running task has declared an inout or out access to; it is
    ! released when `count` collectives have been started.
    integer(c_int) function imbrex_collective_order_begin_as_spawned(object, count) &
        bind(C, name="imbrex_collective_order_begin_as_spawned")
      import
      type(c_ptr), value :: object
      integer(c_int), value :: count
    end function
    integer(c_int) function imbrex_collective_order_end() &
        bind(C, name="imbrex_collective_order_end")
      import
    end function
  end interface

contains

  integer(c_int) function imbrex_collective_order_begin_by_name(name)
    character(len=*), intent(in) :: name
    imbrex_collective_order_begin_by_name = c_begin_ordered_by_name(name // c_null_char)
  end function

  ! Suspends the running task until the request is complete, as MPI_Wait. `status`: of
  ! MPI_STATUS_SIZE.
  integer(c_int) function imbrex_await_request(request, status)
    integer, intent(inout) :: request
    integer, intent(out), target, optional :: status(:)
    if (present(status)) then
      imbrex_await_request = c_await_request(request, c_loc(status))
    else
      imbrex_await_request = c_await_request(request, c_null_ptr)
    end if
  end function

end module
