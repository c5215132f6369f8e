! SPDX-License-Identifier: BSD-3-Clause
! Data-driven tasks in Fortran: a task begins when the promises that it awaits are set. The task
! that reads them is created first, and the promises are set later, by other tasks.
module data_driven_bodies
  use, intrinsic :: iso_c_binding
  use imbrex
  implicit none
  integer, parameter :: count = 3
  type(c_ptr) :: promises(count), futures(count)
contains
  ! Waits for nothing: its accesses have waited for the futures.
  integer(c_int) function read_all(argument, result) bind(C, name="")
    type(c_ptr), value :: argument, result
    integer(c_int), pointer :: total
    integer(c_int), target :: value
    integer :: i
    call c_f_pointer(argument, total)
    read_all = merge(0, 1, .not. c_associated(result))
    do i = 1, count
      if (imbrex_future_ready(futures(i)) /= 1) read_all = 1
      read_all = read_all + imbrex_future_get(futures(i), c_loc(value), c_sizeof(value))
      total = 10 * total + value
    end do
  end function

  ! The argument is a copy of the number of the promise.
  integer(c_int) function put(argument, result) bind(C, name="")
    type(c_ptr), value :: argument, result
    integer(c_int), pointer :: i
    integer(c_int), target :: value
    call c_f_pointer(argument, i)
    value = 2 * i
    put = merge(0, 1, .not. c_associated(result))
    if (put == 0) put = imbrex_promise_set(promises(i), c_loc(value))
  end function
end module

program fortran_data_driven
  use data_driven_bodies
  implicit none
  integer(c_int), target :: total = 0, i
  type(c_ptr) :: finish
  do i = 1, count
    call check(imbrex_promise_create(c_sizeof(i), promises(i), futures(i)))
  end do
  call check(imbrex_finish_begin(finish))
  call check(imbrex_spawn("read", c_funloc(read_all), c_loc(total), &
    [imbrex_after(futures(1)), imbrex_after(futures(2)), imbrex_after(futures(3))]))
  do i = count, 1, -1
    call check(imbrex_spawn("put", c_funloc(put), c_loc(i), argument_bytes=c_sizeof(i)))
  end do
  call check(imbrex_finish_end(finish))
  do i = 1, count
    call imbrex_promise_free(promises(i))
    call imbrex_future_free(futures(i))
  end do
  print '(a,i0)', "the digits are ", total
  if (total /= 246) error stop 1
contains
  subroutine check(code)
    integer(c_int), intent(in) :: code
    if (code == IMBREX_SUCCESS) return
    print '(a)', imbrex_message()
    error stop 1
  end subroutine
end program
