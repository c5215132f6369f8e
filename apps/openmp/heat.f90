! SPDX-License-Identifier: BSD-3-Clause
! The heat equation on a square, by Gauss-Seidel sweeps, with MPI and OpenMP only. Each rank has a
! band of columns in blocks; a block of a sweep is a task, after its neighbours above and to the
! left in this sweep and those below and to the right in the last (a wavefront). The columns at the
! edges of a band are sent and received in tasks, by plain MPI_Send and MPI_Recv. No barrier parts
! the sweeps. The result must equal, to the last bit, that of sequential sweeps.
module sweeping
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use command_line
  use mpi
  use omp_lib
  implicit none
  integer, parameter :: real_kind = real64
  integer, parameter :: to_left = 0, to_right = 1
  integer :: side = 512, width = 64, sweeps = 20  ! inner points, points of a block's side
  logical :: check = .true.
  integer :: first_column, band  ! inner columns of this rank: which, how many
  integer :: down, across        ! blocks of this rank
  real(real_kind), allocatable :: field(:,:)
  real(real_kind), allocatable :: left_halo(:,:), right_halo(:,:)  ! received, by turns
  ! `depend` names these: blocks; beside them received parts of columns, those of odd sweeps
  ! outside.
  integer, allocatable :: marks(:,:)
  character(90), parameter :: usage(*) = [character(90) :: &
    'heat: Gauss-Seidel sweeps over a square with MPI and OpenMP tasks, checks the result', &
    '  -n N   inner points of a side (512)', &
    '  -b N   points of a block''s side (64)', &
    '  -s N   sweeps (20)', &
    '  -u     unchecked: without the sequential sweeps on every rank', &
    '  -h     this text']

contains

  ! Returns the value on the border of the whole square, and 0 inside.
  pure real(real_kind) function initial(row, column)
    integer, intent(in) :: row, column
    initial = 0
    if (row == side + 1 .or. column == side + 1) initial = 0.25_real_kind
    if (row == 0) initial = 0.5_real_kind - 0.002_real_kind * column
    if (column == 0) initial = 1.0_real_kind + 0.001_real_kind * row
  end function initial

  subroutine make_field()
    integer :: x, y
    first_column = int(int(side, 8) * rank / ranks) + 1
    band = int(int(side, 8) * (rank + 1) / ranks) - first_column + 1
    across = (band + width - 1) / width
    down = (side + width - 1) / width
    allocate(field(0:side + 1, 0:band + 1))
    allocate(left_halo(0:side + 1, 0:1), right_halo(0:side + 1, 0:1), source=0.0_real_kind)
    allocate(marks(0:down + 1, -1:across + 2), source=0)
    do x = 0, band + 1
      do y = 0, side + 1
        field(y, x) = initial(y, first_column - 1 + x)
      end do
    end do
  end subroutine make_field

  ! ---- what tasks do ---------------------------------------------------------------------------

  ! One sweep over the rows `first` to `last` of a column.
  subroutine relax(column, left, right, first, last)
    real(real_kind), intent(inout) :: column(0:side + 1)
    real(real_kind), intent(in) :: left(0:side + 1), right(0:side + 1)
    integer, intent(in) :: first, last
    integer :: y
    do y = first, last
      column(y) = 0.25_real_kind * (left(y) + column(y - 1) + column(y + 1) + right(y))
    end do
  end subroutine relax

  ! Another band's column is where it was received.
  subroutine relax_block(i, j, sweep)
    integer, intent(in) :: i, j, sweep
    integer :: x, first, last
    first = (i - 1) * width + 1
    last = min(i * width, side)
    do x = (j - 1) * width + 1, min(j * width, band)
      if (x == 1 .and. rank > 0) field(first:last, 0) = left_halo(first:last, mod(sweep, 2))
      if (x == band .and. rank < ranks - 1) then
        field(first:last, band + 1) = right_halo(first:last, mod(sweep, 2))
      end if
      call relax(field(:, x), field(:, x - 1), field(:, x + 1), first, last)
    end do
  end subroutine relax_block

  ! Receives of one sweep and of the next may be open together; that of the next but one follows.
  pure integer function tag_of(turn, direction, i)
    integer, intent(in) :: turn, direction, i
    tag_of = (2 * turn + direction) * (down + 1) + i
  end function tag_of

  subroutine send_part(column, i, peer, tag)
    real(real_kind), intent(in) :: column(0:side + 1)
    integer, intent(in) :: i, peer, tag
    integer :: first, count, error
    first = (i - 1) * width + 1
    count = min(width, side - first + 1)
    call MPI_Send(column(first), count, MPI_DOUBLE_PRECISION, peer, tag, MPI_COMM_WORLD, error)
  end subroutine send_part

  subroutine receive_part(column, i, peer, tag)
    real(real_kind), intent(inout) :: column(0:side + 1)
    integer, intent(in) :: i, peer, tag
    integer :: first, count, error
    first = (i - 1) * width + 1
    count = min(width, side - first + 1)
    call MPI_Recv(column(first), count, MPI_DOUBLE_PRECISION, peer, tag, MPI_COMM_WORLD, &
      MPI_STATUS_IGNORE, error)
  end subroutine receive_part

  ! ---- the tasks of one sweep ------------------------------------------------------------------

  subroutine create_receives(turn)
    integer, intent(in) :: turn
    integer :: i
    do i = 1, down
      if (rank > 0) then
        !$omp task depend(inout: marks(i, -turn)) firstprivate(i, turn)
        call receive_part(left_halo(:, turn), i, rank - 1, tag_of(turn, to_right, i))
        !$omp end task
      end if
      if (rank < ranks - 1) then
        !$omp task depend(inout: marks(i, across + 1 + turn)) firstprivate(i, turn)
        call receive_part(right_halo(:, turn), i, rank + 1, tag_of(turn, to_left, i))
        !$omp end task
      end if
    end do
  end subroutine create_receives

  ! The first column as the last sweep left it.
  subroutine create_sends_left(turn)
    integer, intent(in) :: turn
    integer :: i
    do i = 1, down
      !$omp task depend(in: marks(i, 1)) firstprivate(i, turn)
      call send_part(field(:, 1), i, rank - 1, tag_of(turn, to_left, i))
      !$omp end task
    end do
  end subroutine create_sends_left

  ! The last column of this sweep.
  subroutine create_sends_right(turn)
    integer, intent(in) :: turn
    integer :: i
    do i = 1, down
      !$omp task depend(in: marks(i, across)) firstprivate(i, turn)
      call send_part(field(:, band), i, rank + 1, tag_of(turn, to_right, i))
      !$omp end task
    end do
  end subroutine create_sends_right

  subroutine create_blocks(sweep)
    integer, intent(in) :: sweep
    integer :: i, j, left, right
    do j = 1, across
      left = merge(-mod(sweep, 2), j - 1, j == 1)
      right = merge(across + 1 + mod(sweep, 2), j + 1, j == across)
      do i = 1, down
        !$omp task depend(in: marks(i, left), marks(i, right), marks(i - 1, j), marks(i + 1, j)) &
        !$omp depend(inout: marks(i, j)) firstprivate(i, j, sweep)
        call relax_block(i, j, sweep)
        !$omp end task
      end do
    end do
  end subroutine create_blocks

  subroutine create_tasks()
    integer :: sweep
    do sweep = 1, sweeps
      call create_receives(mod(sweep, 2))
      if (rank > 0) call create_sends_left(mod(sweep, 2))
      call create_blocks(sweep)
      if (rank < ranks - 1) call create_sends_right(mod(sweep, 2))
    end do
  end subroutine create_tasks

  ! ---- the check -------------------------------------------------------------------------------

  pure integer(int64) function bits(value)
    real(real_kind), intent(in) :: value
    bits = transfer(value, bits)
  end function bits

  ! Points of this rank that differ from a sequential computation of the whole.
  integer function differences()
    real(real_kind), allocatable :: whole(:,:)
    integer :: x, y, sweep
    allocate(whole(0:side + 1, 0:side + 1))
    do x = 0, side + 1
      do y = 0, side + 1
        whole(y, x) = initial(y, x)
      end do
    end do
    do sweep = 1, sweeps
      do x = 1, side
        call relax(whole(:, x), whole(:, x - 1), whole(:, x + 1), 1, side)
      end do
    end do
    differences = 0
    do x = 1, band
      do y = 1, side
        if (bits(field(y, x)) /= bits(whole(y, first_column - 1 + x))) &
          differences = differences + 1
      end do
    end do
  end function differences

  ! ---- options ---------------------------------------------------------------------------------

  subroutine read_options()
    character(32) :: word
    integer :: index, error
    integer(MPI_ADDRESS_KIND) :: largest_tag
    logical :: found
    index = 1
    do while (index <= command_argument_count())
      call get_command_argument(index, word)
      select case (word)
      case ('-n'); side = whole_number(index + 1)
      case ('-b'); width = whole_number(index + 1)
      case ('-s'); sweeps = whole_number(index + 1)
      case ('-u'); check = .false.
      case ('-h'); call leave(0, '')
      case default; call leave(2, 'an option is unknown: ' // trim(word))
      end select
      index = index + merge(1, 2, word == '-u')
    end do
    if (side < ranks) call leave(2, 'there must be a column for each rank (-n)')
    call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, largest_tag, found, error)
    if (4 * ((side - 1) / width + 2) > largest_tag) then
      call leave(2, 'there are more blocks than MPI has tags: take larger ones (-b)')
    end if
  end subroutine read_options
end module sweeping

program heat
  use sweeping
  implicit none
  integer :: error, threads, wrong
  real(real_kind) :: start, seconds
  call start_mpi('heat', usage)
  call read_options()
  call make_field()
  call MPI_Barrier(MPI_COMM_WORLD, error)
  start = MPI_Wtime()
  !$omp parallel
  !$omp single
  threads = omp_get_num_threads()
  call create_tasks()
  !$omp end single
  !$omp end parallel
  call MPI_Barrier(MPI_COMM_WORLD, error)
  seconds = MPI_Wtime() - start
  wrong = 0
  if (check) wrong = differences()
  call MPI_Allreduce(MPI_IN_PLACE, wrong, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
  if (rank == 0) then
    write(*, '(a,i0,a,i0,a,i0,a,i0,a,i0,a,i0,a,f0.4,a,f0.1,a)', advance='no') 'heat: ', side, &
      ' x ', side, ' points, blocks of ', width, ', ', sweeps, ' sweeps, ', ranks, ' ranks, ', &
      threads, ' threads each: ', seconds, ' s, ', &
      1e-6_real_kind * side * side * sweeps / seconds, ' Mpoints/s: '
    if (.not. check) then
      print '(a)', 'unchecked'
    else if (wrong == 0) then
      print '(a)', 'right'
    else
      print '(a,i0,a)', 'WRONG in ', wrong, ' points'
    end if
  end if
  call MPI_Finalize(error)
  if (wrong /= 0) stop 1
end program heat
