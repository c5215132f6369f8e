! SPDX-License-Identifier: BSD-3-Clause
! A search that stops in Fortran: the first task that finds the number tells the finish to stop, and
! tasks that have not begun do not begin.
module stop_bodies
  use, intrinsic :: iso_c_binding
  use imbrex
  implicit none
  integer, parameter :: part = 1000, wanted = 2500
  type(c_ptr) :: search
  integer(c_int), target :: found = 0
contains
  ! The argument is a copy of the number of the part.
  integer(c_int) function look(argument, result) bind(C, name="")
    type(c_ptr), value :: argument, result
    integer(c_int), pointer :: number
    integer :: i
    call c_f_pointer(argument, number)
    look = merge(0, 1, .not. c_associated(result))
    do i = (number - 1) * part + 1, number * part
      if (imbrex_stop_requested() == 1) return
      if (i /= wanted) cycle
      found = i
      look = imbrex_request_stop(search)
    end do
  end function
end module

program fortran_stop
  use stop_bodies
  implicit none
  integer(c_int), target :: i
  call check(imbrex_finish_begin_stoppable(search, on_error=.true.))
  do i = 1, 1000
    call check(imbrex_spawn("look", c_funloc(look), c_loc(i), argument_bytes=c_sizeof(i)))
  end do
  call check(imbrex_finish_end(search))
  print '(a,i0)', "found ", found
  if (found /= wanted) error stop 1
contains
  subroutine check(code)
    integer(c_int), intent(in) :: code
    if (code == IMBREX_SUCCESS) return
    print '(a)', imbrex_message()
    error stop 1
  end subroutine
end program
