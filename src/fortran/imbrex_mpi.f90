! SPDX-License-Identifier: BSD-3-Clause
! imbrex/mpi.h for Fortran: requests, for tasks. A request is an integer, as with mpif.h and `use
! mpi`; with mpi_f08 give its MPI_VAL. Codes and messages as in the module imbrex.
module imbrex_mpi
  use, intrinsic :: iso_c_binding
  implicit none
  private
  public :: imbrex_await_request, imbrex_when_request, imbrex_release_after_request
  public :: imbrex_send_to_all, imbrex_isend_to_all
  public :: imbrex_begin_ordered, imbrex_begin_ordered_by_name
  public :: imbrex_begin_ordered_as_spawned, imbrex_end_ordered

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
    ! The same without a future: the running task, once its body has ended, keeps its dependents
    ! waiting for the request too.
    integer(c_int) function imbrex_release_after_request(request) &
        bind(C, name="imbrex_release_after_request_fortran")
      import
      integer, intent(inout) :: request
    end function
    integer(c_int) function c_send_to_all(buffer, count, type, ranks, n, tag, comm) &
        bind(C, name="imbrex_send_to_all_fortran")
      import
      type(c_ptr), value :: buffer
      integer, value :: count, type, n, tag, comm
      integer, intent(in) :: ranks(*)
    end function
    integer(c_int) function c_isend_to_all(buffer, count, type, ranks, n, tag, comm, request) &
        bind(C, name="imbrex_isend_to_all_fortran")
      import
      type(c_ptr), value :: buffer
      integer, value :: count, type, n, tag, comm
      integer, intent(in) :: ranks(*)
      integer, intent(out) :: request
    end function
    ! Collectives between a beginning and an end start in an order that all ranks share.
    integer(c_int) function imbrex_begin_ordered(key) bind(C, name="imbrex_begin_ordered")
      import
      integer(c_int64_t), value :: key
    end function
    integer(c_int) function c_begin_ordered_by_name(name) &
        bind(C, name="imbrex_begin_ordered_by_name")
      import
      character(kind=c_char), intent(in) :: name(*)
    end function
    ! `object`: c_loc of what the running task has declared an inout or out access to; it is
    ! released when `count` collectives have been started.
    integer(c_int) function imbrex_begin_ordered_as_spawned(object, count) &
        bind(C, name="imbrex_begin_ordered_as_spawned")
      import
      type(c_ptr), value :: object
      integer(c_int), value :: count
    end function
    integer(c_int) function imbrex_end_ordered() bind(C, name="imbrex_end_ordered")
      import
    end function
  end interface

contains

  integer(c_int) function imbrex_begin_ordered_by_name(name)
    character(len=*), intent(in) :: name
    imbrex_begin_ordered_by_name = c_begin_ordered_by_name(name // c_null_char)
  end function

  ! IMBREX_Send_to_all: the same to each of `ranks`, who receive it by any call that receives.
  ! `buffer`: c_loc of what is sent; handles are integers, as requests are. Returns MPI's codes.
  integer function imbrex_send_to_all(buffer, count, type, ranks, tag, comm)
    type(c_ptr), intent(in) :: buffer
    integer, intent(in) :: count, type, ranks(:), tag, comm
    imbrex_send_to_all = c_send_to_all(buffer, count, type, ranks, size(ranks), tag, comm)
  end function

  ! Returns at once; the buffer may be used again when the request is complete.
  integer function imbrex_isend_to_all(buffer, count, type, ranks, tag, comm, request)
    type(c_ptr), intent(in) :: buffer
    integer, intent(in) :: count, type, ranks(:), tag, comm
    integer, intent(out) :: request
    imbrex_isend_to_all = &
      c_isend_to_all(buffer, count, type, ranks, size(ranks), tag, comm, request)
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
