! SPDX-License-Identifier: BSD-3-Clause
! A task fails; tasks that read its output do not run, and a task that cleans up does.
module after_failure_bodies
  use imbrex
  use, intrinsic :: iso_c_binding
  implicit none
contains
  integer(c_int) function fail(argument, result) bind(C, name="")
    type(c_ptr), value :: argument, result
    fail = merge(7, 8, c_associated(argument) .and. .not. c_associated(result))
  end function

  integer(c_int) function count_it(argument, result) bind(C, name="")
    type(c_ptr), value :: argument, result
    integer(c_int), pointer :: number
    call c_f_pointer(argument, number)
    number = number + 1
    count_it = merge(0, 1, .not. c_associated(result))
  end function
end module

program after_failure
  use after_failure_bodies
  implicit none
  integer(c_int), target :: block = 0, reads = 0, cleanings = 0, later_reads = 0
  type(c_ptr) :: load, reading, cleaning, reading_later
  call spawn("load", c_funloc(fail), block, [imbrex_out(c_loc(block))], load)
  call spawn("read", c_funloc(count_it), reads, [imbrex_in(c_loc(block))], reading, .false.)
  call spawn("clean up", c_funloc(count_it), cleanings, [imbrex_inout(c_loc(block))], cleaning, &
    .true.)
  call spawn("read", c_funloc(count_it), later_reads, [imbrex_in(c_loc(block))], reading_later)
  call expect("load", load, .true.)
  call expect("read", reading, .true.)
  call expect("clean up", cleaning, .false.)
  call expect("read later", reading_later, .false.)
  print '(a,3i2)', "ran:", reads, cleanings, later_reads
  if (reads /= 0 .or. cleanings /= 1 .or. later_reads /= 1) error stop 1
contains
  subroutine spawn(name, body, argument, accesses, future, cleans)
    character(*), intent(in) :: name
    type(c_funptr), value :: body
    integer(c_int), target :: argument
    type(imbrex_access), intent(in) :: accesses(:)
    type(c_ptr), intent(out) :: future
    logical, intent(in), optional :: cleans
    if (imbrex_spawn(name, body, c_loc(argument), accesses, future, run_after_failure=cleans) &
        == IMBREX_SUCCESS) return
    print '(a)', imbrex_message()
    error stop 1
  end subroutine

  ! Waits for it.
  subroutine expect(name, future, fails)
    character(*), intent(in) :: name
    type(c_ptr), intent(inout) :: future
    logical, intent(in) :: fails
    logical :: failed
    failed = imbrex_future_wait(future) /= IMBREX_SUCCESS
    if (failed) print '(a)', imbrex_message()
    call imbrex_future_free(future)
    if (failed .eqv. fails) return
    print '(2a)', name, merge(" has failed    ", " has not failed", failed)
    error stop 1
  end subroutine
end program
