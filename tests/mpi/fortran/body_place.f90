! SPDX-License-Identifier: BSD-3-Clause
! Tasks that fail: without file= and line=, a message names the place of the body.
module failing
  use, intrinsic :: iso_c_binding
  use imbrex
  implicit none
contains
  ! The lines of this body have two digits,



  integer(c_int) function fails(argument, result) bind(C, name="")
    type(c_ptr), value :: argument, result
    fails = merge(7, 8, c_associated(argument) .or. c_associated(result))
  end function

  ! and so have these.



  integer(c_int) function fails_too(argument, result) bind(C, name="")
    type(c_ptr), value :: argument, result
    fails_too = merge(9, 10, c_associated(argument) .or. c_associated(result))
  end function
end module

program body_place
  use failing
  implicit none
  call show(imbrex_spawn("fails", c_funloc(fails)))
  call show(imbrex_spawn("other", c_funloc(fails_too)))
  call show(imbrex_spawn("given", c_funloc(fails), file="solver.f90", line=12))
contains
  subroutine show(code)
    integer(c_int), intent(in) :: code
    if (code /= IMBREX_SUCCESS) error stop 1
    if (imbrex_taskwait() /= IMBREX_SUCCESS) print '(a)', imbrex_message()
  end subroutine
end program
