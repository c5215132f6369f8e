! SPDX-License-Identifier: BSD-3-Clause
! Loops: what the codes and messages of imbrex_iterate() say where a task or a body fails.
module iterates_bodies
  use imbrex
  use, intrinsic :: iso_c_binding
  implicit none
  integer(c_int), target :: runs = 0, fails_at = -1, ends_at = -1
contains
  integer(c_int) function counts(argument, result) bind(C, name="")
    type(c_ptr), value :: argument, result
    integer(c_int), pointer :: number
    call c_f_pointer(argument, number)
    counts = 8
    if (c_associated(result) .or. number /= imbrex_iteration()) return
    number = number + 1
    counts = merge(7, 0, imbrex_iteration() == fails_at)
    if (imbrex_iteration() == ends_at) counts = imbrex_stop_iterating()
  end function

  integer(c_int) function creates(argument, i) bind(C, name="")
    type(c_ptr), value :: argument
    integer(c_int64_t), value :: i
    creates = 1
    if (i > 1) return  ! 1 with IMBREX_CHECK=1
    creates = imbrex_spawn("count", c_funloc(counts), argument, [imbrex_inout(argument)], &
      decides=ends_at >= 0)
  end function

  integer(c_int) function wants_a_future(argument, i) bind(C, name="")
    type(c_ptr), value :: argument
    integer(c_int64_t), value :: i
    type(c_ptr) :: future
    wants_a_future = imbrex_spawn("ready once", c_funloc(counts), argument, future=future, &
      priority=int(i, c_int))
  end function
end module

program iterates
  use iterates_bodies
  implicit none
  if (imbrex_iteration() /= -1) error stop 2
  call expect("all", IMBREX_SUCCESS, imbrex_iterate(100_c_int64_t, c_funloc(creates), c_loc(runs)))
  call expect("none", IMBREX_SUCCESS, imbrex_iterate(0_c_int64_t, c_funloc(creates), c_loc(runs)))
  ends_at = 6
  call expect("some", IMBREX_SUCCESS, imbrex_iterate(100_c_int64_t, c_funloc(creates), c_loc(runs)))
  ends_at = -1
  fails_at = 3
  call expect("fails", IMBREX_ERR_TASK, &
    imbrex_iterate(100_c_int64_t, c_funloc(creates), c_loc(runs)))
  call expect("future", IMBREX_ERR_USE, &
    imbrex_iterate(100_c_int64_t, c_funloc(wants_a_future), c_loc(runs)))
  call expect("period", IMBREX_ERR_USE, imbrex_iterate(100_c_int64_t, c_funloc(creates), &
    c_loc(runs), period=0_c_int64_t, file="solver.f90", line=12))
contains
  ! Prints how many tasks have run.
  subroutine expect(name, code, is)
    character(*), intent(in) :: name
    integer(c_int), intent(in) :: code, is
    print '(2a,i0)', name, ": ", runs
    if (is /= IMBREX_SUCCESS) print '(a)', imbrex_message()
    runs = 0
    if (is /= code) error stop 1
  end subroutine
end program
