! SPDX-License-Identifier: BSD-3-Clause
! Eight tasks, each with a large local array of its own. With gfortran that needs -frecursive, which
! imbrex-fort and imbrex::fortran give.
module sum_bodies
  use, intrinsic :: iso_c_binding
  use imbrex
  implicit none
  integer, parameter :: n = 10000
  type :: part
    integer :: first = 0
    integer(c_int64_t) :: total = 0
  end type
contains
  ! The body of a task: the argument comes from c_loc, and 0 means success. With name="" the linker
  ! does not see the function's name, so the function replaces no function of C.
  integer(c_int) function add_up(argument, result) bind(C, name="")
    type(c_ptr), value :: argument, result
    type(part), pointer :: mine
    integer(c_int64_t) :: numbers(n)
    integer :: i
    call c_f_pointer(argument, mine)
    do i = 1, n
      numbers(i) = mine%first + i
    end do
    mine%total = sum(numbers)
    add_up = merge(0, 1, .not. c_associated(result))
  end function
end module

program fortran_sum
  use sum_bodies
  implicit none
  type(part), target :: parts(8)
  type(c_ptr) :: finish
  integer :: i
  call check(imbrex_finish_begin(finish))
  do i = 1, 8
    parts(i)%first = (i - 1) * n
    call check(imbrex_spawn("add up", c_funloc(add_up), c_loc(parts(i))))
  end do
  call check(imbrex_finish_end(finish))  ! waits for the tasks
  print '(a,i0)', "the sum is ", sum(parts%total)
  if (sum(parts%total) /= 3200040000_c_int64_t) error stop 1
contains
  subroutine check(code)
    integer(c_int), intent(in) :: code
    if (code == IMBREX_SUCCESS) return
    print '(a)', imbrex_message()
    error stop 1
  end subroutine
end program
