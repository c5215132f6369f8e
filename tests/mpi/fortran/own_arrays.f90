! SPDX-License-Identifier: BSD-3-Clause
! Each task has its own copy of a large local array, which gfortran would make static: other tasks
! write theirs while one is suspended.
module own_arrays_bodies
  use, intrinsic :: iso_c_binding
  use imbrex
  implicit none
contains
  integer(c_int) function body(argument, result) bind(C, name="")
    type(c_ptr), value :: argument, result
    integer(c_int), pointer :: id
    real(c_double) :: numbers(10000)
    integer :: i
    call c_f_pointer(argument, id)
    numbers = id
    body = merge(0, 1, .not. c_associated(result))
    do i = 1, 10
      if (imbrex_yield() /= IMBREX_SUCCESS) body = 2
      if (any(numbers /= id)) body = 3
    end do
  end function
end module

program own_arrays
  use own_arrays_bodies
  implicit none
  integer(c_int), target :: ids(8)
  type(c_ptr) :: finish
  integer(c_int) :: code
  integer :: i
  code = imbrex_finish_begin(finish)
  do i = 1, 8
    ids(i) = i
    code = max(code, imbrex_spawn("body", c_funloc(body), c_loc(ids(i))))
  end do
  code = max(code, imbrex_finish_end(finish))
  if (code == IMBREX_SUCCESS) stop
  print '(a)', imbrex_message()
  error stop 1
end program
