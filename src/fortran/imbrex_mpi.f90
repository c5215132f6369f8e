! SPDX-License-Identifier: BSD-3-Clause
! imbrex/mpi.h for Fortran: requests, for tasks. A request is an integer, as with mpif.h and `use
! mpi`; with mpi_f08 give its MPI_VAL. Codes and messages as in the module imbrex.
module imbrex_mpi
  use, intrinsic :: iso_c_binding
  implicit none
  private
  public :: imbrex_await_request, imbrex_when_request, imbrex_release_after_request

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
  end interface

contains

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
