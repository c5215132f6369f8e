! SPDX-License-Identifier: BSD-3-Clause
! Tasks from Fortran: accesses, a finish, a named event and its trigger. A body is a bind(C)
! function; what it works on is given by c_loc.
module tasks_bodies
  use imbrex
  use, intrinsic :: iso_c_binding
  implicit none
contains
  integer(c_int) function add(argument, result) bind(C, name="")
    type(c_ptr), value :: argument, result
    integer(c_int), pointer :: number
    call c_f_pointer(argument, number)
    number = number + 1
    add = merge(0, 1, .not. c_associated(result))
  end function

  integer(c_int) function double_it(argument, result) bind(C, name="")
    type(c_ptr), value :: argument, result
    integer(c_int), pointer :: number
    call c_f_pointer(argument, number)
    number = 2 * number
    double_it = merge(0, 1, .not. c_associated(result))
  end function

  ! Called by idle workers until it returns 0.
  integer(c_int) function look(argument) bind(C, name="")
    type(c_ptr), value :: argument
    integer(c_int), pointer :: count
    call c_f_pointer(argument, count)
    count = count + 1
    look = 1
    if (count < 10) return
    if (imbrex_trigger("ghost_done") == IMBREX_SUCCESS) look = 0
  end function
end module

program tasks
  use tasks_bodies
  implicit none
  integer(c_int), target :: number = 0, calls = 0
  type(c_ptr) :: finish
  integer(c_int) :: places(64), level
  integer :: i
  if (imbrex_place_count() < 1 .or. imbrex_place_parent(-1) /= -1) error stop 2
  if (imbrex_place_children(-1, places, 64) < 1) error stop 2
  level = imbrex_place_level(places(1))
  if (level /= 1 .or. imbrex_place_kind(places(1)) > IMBREX_PLACE_CACHE) error stop 2
  call check(imbrex_finish_begin(finish))
  call check(imbrex_progress_register(c_funloc(look), c_loc(calls)))
  do i = 1, 10
    call check(imbrex_spawn("add", c_funloc(add), c_loc(number), [imbrex_inout(c_loc(number))]))
  end do
  call check(imbrex_spawn("double", c_funloc(double_it), c_loc(number), &
    [imbrex_inout(c_loc(number)), imbrex_named("ghost_done")]))
  call check(imbrex_finish_end(finish))
  print '(a,i0,a,i0,a)', "the number is ", number, ", after ", calls, " calls"
  if (number /= 20 .or. calls /= 10) error stop 1
contains
  subroutine check(code)
    integer(c_int), intent(in) :: code
    if (code == IMBREX_SUCCESS) return
    print '(a)', imbrex_message()
    error stop 1
  end subroutine
end program
