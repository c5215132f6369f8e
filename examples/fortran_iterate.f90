! SPDX-License-Identifier: BSD-3-Clause
! A loop in Fortran whose tasks are created once: heat in a rod, until it changes no more.
module iterate_bodies
  use, intrinsic :: iso_c_binding
  use imbrex
  implicit none
  integer, parameter :: blocks = 4, width = 8, points = blocks * width
  ! The first and last point are the ends, which stay as they are.
  real(c_double), target :: rods(0:points + 1, 0:1) = 0
  real(c_double), target :: changes(blocks) = 0
  integer, target :: numbers(blocks) = [1, 2, 3, 4]
  integer(c_int64_t) :: iterations = 0
contains
  ! The body of a task; its argument is the number of the block.
  integer(c_int) function relax(argument, result) bind(C, name="")
    type(c_ptr), value :: argument, result
    integer, pointer :: block
    integer :: u, first, last
    call c_f_pointer(argument, block)
    u = int(mod(imbrex_iteration(), 2_c_int64_t))
    first = 1 + (block - 1) * width
    last = block * width
    rods(first:last, 1 - u) = (rods(first - 1:last - 1, u) + rods(first + 1:last + 1, u)) / 2
    changes(block) = maxval(abs(rods(first:last, 1) - rods(first:last, 0)))
    relax = merge(0, 1, .not. c_associated(result))
  end function

  integer(c_int) function test(argument, result) bind(C, name="")
    type(c_ptr), value :: argument, result
    test = merge(0, 1, .not. c_associated(argument) .and. .not. c_associated(result))
    if (maxval(changes) > 1e-6) return
    iterations = imbrex_iteration() + 1
    test = imbrex_stop_iterating()
  end function

  ! Creates the tasks of iteration i. A block of the rod is named by its first point.
  integer(c_int) function sweep(argument, i) bind(C, name="")
    type(c_ptr), value :: argument
    integer(c_int64_t), value :: i
    integer :: block, u, first
    u = int(mod(i, 2_c_int64_t))
    do block = 1, blocks
      first = 1 + (block - 1) * width
      sweep = imbrex_spawn("relax", c_funloc(relax), c_loc(numbers(block)), [ &
        imbrex_in(c_loc(rods(max(first - width, 0), u))), imbrex_in(c_loc(rods(first, u))), &
        imbrex_in(c_loc(rods(first + width, u))), imbrex_out(c_loc(rods(first, 1 - u))), &
        imbrex_out(c_loc(changes(block)))])
      if (sweep /= IMBREX_SUCCESS .or. c_associated(argument)) return
    end do
    sweep = imbrex_spawn("test", c_funloc(test), accesses=[imbrex_in(c_loc(changes(1))), &
      imbrex_in(c_loc(changes(2))), imbrex_in(c_loc(changes(3))), imbrex_in(c_loc(changes(4)))], &
      decides=.true.)
  end function
end module

program fortran_iterate
  use iterate_bodies
  implicit none
  real(c_double) :: error
  integer :: x
  rods(0, :) = 100
  if (imbrex_iterate(100000_c_int64_t, c_funloc(sweep), period=2_c_int64_t) /= IMBREX_SUCCESS) then
    print '(a)', imbrex_message()
    error stop 1
  end if
  error = 0  ! the heat falls along a line
  do x = 0, points + 1
    error = max(error, abs(rods(x, mod(iterations, 2_c_int64_t)) &
      - 100.0_c_double * (points + 1 - x) / (points + 1)))
  end do
  print '(i0,a,f6.4)', iterations, " iterations, error ", error
  if (iterations == 0 .or. error > 0.01) error stop 1
end program
