! SPDX-License-Identifier: BSD-3-Clause
! A conjugate gradient with mpi_f08. The halo exchange, the sums over all ranks and the work on
! blocks are tasks. Each rank has rows of a grid; the matrix has 4 on its diagonal, and -1 for each
! of the four neighbours. Plain MPI then solves the system again, and the solutions are compared.
module cg
  use, intrinsic :: iso_c_binding
  use mpi_f08
  use imbrex
  implicit none
  integer, parameter :: columns = 64, blocks = 4, height = 8, rows = blocks * height
  real(c_double), parameter :: small = 1e-16_c_double
  ! Rows 0 and rows + 1 of `p` are the halo. Beyond the first and the last rank it stays 0.
  real(c_double), target :: p(columns, 0:rows + 1), q(columns, rows), r(columns, rows)
  real(c_double), target :: x(columns, rows), pq(blocks), rr(blocks), before, step_length, turn_by
  integer :: up = MPI_PROC_NULL, down = MPI_PROC_NULL
contains
  ! ---- the work on one block, and the sums: both solvers call these procedures ----

  subroutine begin(rank)
    integer, intent(in) :: rank
    integer :: i, j
    do j = 1, rows
      r(:, j) = [(real(mod(7 * i + 3 * (rank * rows + j), 11) - 5, c_double), i = 1, columns)]
    end do
    x = 0
    p = 0
    p(:, 1:rows) = r
    before = sum_of_ranks(sum(r * r))
  end subroutine

  subroutine multiply(b)
    integer, intent(in) :: b
    integer :: j
    do j = first(b), first(b + 1) - 1
      q(:, j) = 4 * p(:, j) - p(:, j - 1) - p(:, j + 1)
      q(2:, j) = q(2:, j) - p(:columns - 1, j)
      q(:columns - 1, j) = q(:columns - 1, j) - p(2:, j)
    end do
    pq(b) = sum(p(:, first(b):first(b + 1) - 1) * q(:, first(b):first(b + 1) - 1))
  end subroutine

  subroutine step(b)
    integer, intent(in) :: b
    integer :: j
    do j = first(b), first(b + 1) - 1
      x(:, j) = x(:, j) + step_length * p(:, j)
      r(:, j) = r(:, j) - step_length * q(:, j)
    end do
    rr(b) = sum(r(:, first(b):first(b + 1) - 1)**2)
  end subroutine

  subroutine turn(b)
    integer, intent(in) :: b
    integer :: j
    do j = first(b), first(b + 1) - 1
      p(:, j) = r(:, j) + turn_by * p(:, j)
    end do
  end subroutine

  subroutine find_step_length()
    step_length = before / sum_of_ranks(sum(pq))
  end subroutine

  subroutine find_turn()
    real(c_double) :: now
    now = sum_of_ranks(sum(rr))
    turn_by = now / before
    before = now
  end subroutine

  real(c_double) function sum_of_ranks(mine)
    real(c_double), intent(in) :: mine
    call MPI_Allreduce(mine, sum_of_ranks, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
  end function

  ! The first row of a block; the halo rows are the blocks 0 and blocks + 1.
  pure integer function first(b)
    integer, intent(in) :: b
    first = max(0, 1 + (b - 1) * height)
  end function

  ! ---- bodies of tasks; the argument is the number of a block ----

  integer(c_int) function receive_task(argument, result) bind(C, name="")
    type(c_ptr), value :: argument, result
    integer :: from, row
    from = merge(up, down, block_of(argument, result) == 0)
    row = first(block_of(argument, result))
    call MPI_Recv(p(:, row), columns, MPI_DOUBLE_PRECISION, from, 0, MPI_COMM_WORLD, &
      MPI_STATUS_IGNORE)
    receive_task = 0
  end function

  integer(c_int) function send_task(argument, result) bind(C, name="")
    type(c_ptr), value :: argument, result
    integer :: to, row
    to = merge(up, down, block_of(argument, result) == 1)
    row = merge(1, rows, block_of(argument, result) == 1)
    call MPI_Send(p(:, row), columns, MPI_DOUBLE_PRECISION, to, 0, MPI_COMM_WORLD)
    send_task = 0
  end function

  integer(c_int) function multiply_task(argument, result) bind(C, name="")
    type(c_ptr), value :: argument, result
    call multiply(block_of(argument, result))
    multiply_task = 0
  end function

  integer(c_int) function step_length_task(argument, result) bind(C, name="")
    type(c_ptr), value :: argument, result
    step_length_task = merge(0, 1, block_of(argument, result) == 0)
    call find_step_length()
  end function

  integer(c_int) function step_task(argument, result) bind(C, name="")
    type(c_ptr), value :: argument, result
    call step(block_of(argument, result))
    step_task = 0
  end function

  integer(c_int) function turn_by_task(argument, result) bind(C, name="")
    type(c_ptr), value :: argument, result
    turn_by_task = merge(0, 1, block_of(argument, result) == 0)
    call find_turn()
  end function

  integer(c_int) function turn_task(argument, result) bind(C, name="")
    type(c_ptr), value :: argument, result
    call turn(block_of(argument, result))
    turn_task = 0
  end function

  integer function block_of(argument, result)
    type(c_ptr), intent(in) :: argument, result
    integer, pointer :: b
    call c_f_pointer(argument, b)
    block_of = merge(b, -1, .not. c_associated(result))
  end function

  ! ---- the two solvers ----

  ! One iteration. An array's block is named by its first element, in the order of a plain loop.
  subroutine create_tasks(length_known)
    type(c_ptr), intent(out) :: length_known
    integer :: b
    call spawn("receive", c_funloc(receive_task), 0, [imbrex_out(c_loc(p(1, 0)))])
    call spawn("receive", c_funloc(receive_task), blocks + 1, [imbrex_out(c_loc(p(1, rows + 1)))])
    call spawn("send", c_funloc(send_task), 1, [imbrex_in(c_loc(p(1, 1)))])
    call spawn("send", c_funloc(send_task), blocks, [imbrex_in(c_loc(p(1, first(blocks))))])
    do b = 1, blocks
      call spawn("multiply", c_funloc(multiply_task), b, [imbrex_in(c_loc(p(1, first(b - 1)))), &
        imbrex_in(c_loc(p(1, first(b)))), imbrex_in(c_loc(p(1, first(b + 1)))), &
        imbrex_out(c_loc(q(1, first(b)))), imbrex_out(c_loc(pq(b)))])
    end do
    call spawn("step length", c_funloc(step_length_task), 0, &
      [(imbrex_in(c_loc(pq(b))), b = 1, blocks), imbrex_out(c_loc(step_length))])
    do b = 1, blocks
      call spawn("step", c_funloc(step_task), b, [imbrex_in(c_loc(step_length)), &
        imbrex_in(c_loc(p(1, first(b)))), imbrex_in(c_loc(q(1, first(b)))), &
        imbrex_inout(c_loc(r(1, first(b)))), imbrex_out(c_loc(rr(b)))])
    end do
    call spawn("turn by", c_funloc(turn_by_task), 0, &
      [(imbrex_in(c_loc(rr(b))), b = 1, blocks), imbrex_out(c_loc(turn_by))], length_known)
    do b = 1, blocks
      call spawn("turn", c_funloc(turn_task), b, [imbrex_in(c_loc(turn_by)), &
        imbrex_in(c_loc(r(1, first(b)))), imbrex_inout(c_loc(p(1, first(b))))])
    end do
  end subroutine

  integer function solve_by_tasks() result(iterations)
    type(c_ptr) :: finish, length_known
    real(c_double) :: enough
    enough = small * before
    iterations = 0
    call check(imbrex_finish_begin(finish))
    do while (before > enough)
      call create_tasks(length_known)
      call check(imbrex_future_wait(length_known))
      call imbrex_future_free(length_known)
      iterations = iterations + 1
    end do
    call check(imbrex_finish_end(finish))
  end function

  integer function solve_plainly() result(iterations)
    real(c_double) :: enough
    integer :: b
    enough = small * before
    iterations = 0
    do while (before > enough)
      call MPI_Sendrecv(p(:, 1), columns, MPI_DOUBLE_PRECISION, up, 0, p(:, rows + 1), columns, &
        MPI_DOUBLE_PRECISION, down, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
      call MPI_Sendrecv(p(:, rows), columns, MPI_DOUBLE_PRECISION, down, 0, p(:, 0), columns, &
        MPI_DOUBLE_PRECISION, up, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
      do b = 1, blocks
        call multiply(b)
      end do
      call find_step_length()
      do b = 1, blocks
        call step(b)
      end do
      call find_turn()
      do b = 1, blocks
        call turn(b)
      end do
      iterations = iterations + 1
    end do
  end function

  subroutine spawn(name, body, b, accesses, future)
    character(*), intent(in) :: name
    type(c_funptr), value :: body  ! not by reference: gfortran would put it into .rodata
    integer, intent(in), target :: b
    type(imbrex_access), intent(in) :: accesses(:)
    type(c_ptr), intent(out), optional :: future
    call check(imbrex_spawn(name, body, c_loc(b), accesses, future, &
      argument_bytes=c_sizeof(b)))
  end subroutine

  subroutine check(code)
    integer(c_int), intent(in) :: code
    if (code == IMBREX_SUCCESS) return
    print '(a)', imbrex_message()
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end subroutine
end module

program mpi_cg
  use cg
  implicit none
  real(c_double) :: solution(columns, rows), error
  integer :: rank, ranks, by_tasks, plainly
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  if (rank > 0) up = rank - 1
  if (rank < ranks - 1) down = rank + 1
  call begin(rank)
  by_tasks = solve_by_tasks()
  solution = x
  call begin(rank)
  plainly = solve_plainly()
  call MPI_Allreduce(maxval(abs(solution - x)), error, 1, MPI_DOUBLE_PRECISION, MPI_MAX, &
    MPI_COMM_WORLD)
  if (rank == 0) then
    print '(2(a,i0),a,es7.1)', "tasks: ", by_tasks, " iterations, plain MPI: ", plainly, &
      ", largest difference ", error
  end if
  call MPI_Finalize()
  if (error > 1e-9 .or. by_tasks == 0) error stop 1
end program
