! SPDX-License-Identifier: BSD-3-Clause
! cholesky.c in Fortran: a Cholesky factorisation of a matrix in tiles, spread block-cyclically over
! the ranks, with MPI and OpenMP only. Each kernel, each send and each receive is a task.
module factorisation
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use command_line
  use mpi
  use omp_lib
  implicit none
  integer, parameter :: real_kind = real64
  integer :: failure
  integer :: order = 1024, width = 64  ! of the matrix, of a tile
  integer :: tiles                     ! in a row, numbered from 0
  integer :: grid_rows = 0, grid_columns
  real(real_kind), allocatable, target :: matrix(:,:,:)   ! the tiles of this rank
  integer, allocatable :: place(:,:)                      ! of tile (i, j) there
  real(real_kind), allocatable, target :: panel(:,:,:,:)  ! received tiles of two columns by turns
  character(90), parameter :: usage(*) = [character(90) :: &
    'cholesky: factors a symmetric matrix with MPI and OpenMP tasks, and checks the factor', &
    '  -n N   rows of the matrix (1024)', &
    '  -b N   rows of a tile (64)', &
    '  -p N   rows of the grid of ranks, a divisor of their number (the largest to its root)', &
    '  -h     this text']

contains

  pure integer function extent(tile)
    integer, intent(in) :: tile
    extent = min(width, order - width * tile)
  end function extent

  pure integer function owner(i, j)
    integer, intent(in) :: i, j
    owner = mod(i, grid_rows) * grid_columns + mod(j, grid_columns)
  end function owner

  ! ---- the matrix ------------------------------------------------------------------------------

  ! Between -1/2 and 1/2, the same for (i, j) and (j, i); a heavy diagonal makes it definite.
  pure real(real_kind) function element(i, j)
    integer, intent(in) :: i, j
    integer(int64) :: bits
    bits = ior(ishft(int(min(i, j), int64), 32), int(max(i, j), int64))
    bits = ieor(bits, ishft(bits, 13))
    bits = ieor(bits, ishft(bits, -7))
    bits = ieor(bits, ishft(bits, 17))
    bits = ieor(bits, ishft(bits, 13))
    bits = ieor(bits, ishft(bits, -7))
    bits = ieor(bits, ishft(bits, 17))
    element = real(ishft(bits, -11), real_kind) * 2.0_real_kind**(-53) - 0.5_real_kind
    if (i == j) element = element + order
  end function element

  subroutine make_matrix()
    integer :: i, j, x, y, count
    allocate(place(0:tiles - 1, 0:tiles - 1), source=0)
    count = 0
    do j = 0, tiles - 1
      do i = j, tiles - 1
        if (owner(i, j) /= rank) cycle
        count = count + 1
        place(i, j) = count
      end do
    end do
    allocate(matrix(width, width, count), panel(width, width, 0:tiles - 1, 0:1), &
      source=0.0_real_kind)
    do j = 0, tiles - 1
      do i = j, tiles - 1
        if (owner(i, j) /= rank) cycle
        do y = 1, extent(j)
          do x = 1, extent(i)
            matrix(x, y, place(i, j)) = element(i * width + x, j * width + y)
          end do
        end do
      end do
    end do
  end subroutine make_matrix

  ! ---- messages --------------------------------------------------------------------------------

  ! Whether a rank computes with tile (i, k) of the factor: it has a tile of column k below (k, k),
  ! or of row i or column i right of column k.
  pure logical function needs(who, i, k)
    integer, intent(in) :: who, i, k
    integer :: j
    needs = .true.
    if (i > k) then
      do j = k + 1, i
        if (owner(i, j) == who) return
      end do
    end if
    do j = merge(k + 1, i, i == k), tiles - 1
      if (owner(j, i) == who) return
    end do
    needs = .false.
  end function needs

  subroutine send_tile(tile, i, k)
    real(real_kind), intent(inout) :: tile(width, width)
    integer, intent(in) :: i, k
    integer :: to, error
    do to = 0, ranks - 1
      if (to == rank .or. .not. needs(to, i, k)) cycle
      !$omp task depend(in: tile) firstprivate(to, i, k) private(error) shared(tile)
      call MPI_Send(tile, width * width, MPI_DOUBLE_PRECISION, to, k * tiles + i, MPI_COMM_WORLD, &
        error)
      !$omp end task
    end do
  end subroutine send_tile

  subroutine receive_tile(i, k)
    integer, intent(in) :: i, k
    integer :: error, turn
    turn = mod(k, 2)
    !$omp task depend(out: panel(:,:,i,turn)) firstprivate(i, k, turn) private(error)
    call MPI_Recv(panel(:,:,i,turn), width * width, MPI_DOUBLE_PRECISION, owner(i, k), &
      k * tiles + i, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
    !$omp end task
  end subroutine receive_tile

  ! ---- the factorisation -----------------------------------------------------------------------

  subroutine factor_diagonal(tile, k)
    real(real_kind), intent(inout) :: tile(width, width)
    integer, intent(in) :: k
    integer :: info
    !$omp task depend(inout: tile) firstprivate(k) private(info) shared(tile, failure)
    call dpotrf('L', extent(k), tile, width, info)
    if (info /= 0) then
      !$omp atomic write
      failure = 1
    end if
    !$omp end task
  end subroutine factor_diagonal

  subroutine solve_below(diagonal, tile, i, k)
    real(real_kind), intent(inout) :: diagonal(width, width), tile(width, width)
    integer, intent(in) :: i, k
    !$omp task depend(in: diagonal) depend(inout: tile) firstprivate(i, k) shared(diagonal, tile)
    call dtrsm('R', 'L', 'T', 'N', extent(i), extent(k), 1.0_real_kind, diagonal, width, tile, &
      width)
    !$omp end task
  end subroutine solve_below

  subroutine update(left, right, tile, i, j, k)
    real(real_kind), intent(inout) :: left(width, width), right(width, width), tile(width, width)
    integer, intent(in) :: i, j, k
    if (i == j) then
      !$omp task depend(in: left) depend(inout: tile) firstprivate(i, k) shared(left, tile)
      call dsyrk('L', 'N', extent(i), extent(k), -1.0_real_kind, left, width, 1.0_real_kind, &
        tile, width)
      !$omp end task
    else
      !$omp task depend(in: left, right) depend(inout: tile) firstprivate(i, j, k) &
      !$omp shared(left, right, tile)
      call dgemm('N', 'T', extent(i), extent(j), extent(k), -1.0_real_kind, left, width, right, &
        width, 1.0_real_kind, tile, width)
      !$omp end task
    end if
  end subroutine update

  ! Where tile (i, k) of the factor is on this rank.
  function factor_tile(i, k) result(tile)
    integer, intent(in) :: i, k
    real(real_kind), pointer, contiguous :: tile(:,:)
    if (owner(i, k) == rank) then
      tile => matrix(:, :, place(i, k))
    else
      tile => panel(:, :, i, mod(k, 2))
    end if
  end function factor_tile

  ! Creates all tasks of one rank. What a column receives comes first, so that it can be under way.
  subroutine create_tasks()
    integer :: i, j, k
    do k = 0, tiles - 1
      do i = k, tiles - 1
        if (owner(i, k) /= rank .and. needs(rank, i, k)) call receive_tile(i, k)
      end do
      if (owner(k, k) == rank) then
        call factor_diagonal(factor_tile(k, k), k)
        call send_tile(factor_tile(k, k), k, k)
      end if
      do i = k + 1, tiles - 1
        if (owner(i, k) /= rank) cycle
        call solve_below(factor_tile(k, k), factor_tile(i, k), i, k)
        call send_tile(factor_tile(i, k), i, k)
      end do
      do j = k + 1, tiles - 1
        do i = j, tiles - 1
          if (owner(i, j) /= rank) cycle
          call update(factor_tile(i, k), factor_tile(j, k), factor_tile(i, j), i, j, k)
        end do
      end do
    end do
  end subroutine create_tasks

  ! ---- the check -------------------------------------------------------------------------------

  ! y += L x or, transposed, y += L' x, for the tiles of this rank.
  subroutine multiply(x, y, transposed)
    real(real_kind), intent(in) :: x(order)
    real(real_kind), intent(inout) :: y(order)
    logical, intent(in) :: transposed
    integer :: i, j, r, c, row, column
    do j = 0, tiles - 1
      do i = j, tiles - 1
        if (owner(i, j) /= rank) cycle
        do c = 1, extent(j)
          column = j * width + c
          do r = merge(c, 1, i == j), extent(i)
            row = i * width + r
            if (transposed) then
              y(column) = y(column) + matrix(r, c, place(i, j)) * x(row)
            else
              y(row) = y(row) + matrix(r, c, place(i, j)) * x(column)
            end if
          end do
        end do
      end do
    end do
  end subroutine multiply

  ! |L L' x - A x| / (|A| |x| n eps), in the largest norm, for one x.
  real(real_kind) function residual()
    real(real_kind), allocatable :: x(:), sums(:), partial(:)
    real(real_kind) :: found(3), most(3), total, weight
    integer :: i, j, error
    allocate(x(order), sums(order))
    x = [(element(i, order + i), i = 1, order)]
    allocate(partial(order), source=0.0_real_kind)
    call multiply(x, partial, .true.)
    call MPI_Allreduce(partial, sums, order, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
    partial = 0
    call multiply(sums, partial, .false.)
    call MPI_Allreduce(partial, sums, order, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
    found = 0
    do i = rank + 1, order, ranks
      total = 0
      weight = 0
      do j = 1, order
        total = total + element(i, j) * x(j)
        weight = weight + abs(element(i, j))
      end do
      ! Also true for a difference that is no number.
      if (.not. abs(sums(i) - total) <= found(1)) found(1) = abs(sums(i) - total)
      found(2) = max(found(2), weight)
      found(3) = max(found(3), abs(x(i)))
    end do
    if (.not. found(1) < huge(found)) found(1) = huge(found)
    call MPI_Allreduce(found, most, 3, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, error)
    residual = most(1) / (most(2) * most(3) * order * 2.0_real_kind**(-53))
  end function residual

  ! ---- options ---------------------------------------------------------------------------------

  subroutine read_options()
    character(32) :: word
    integer :: index, divisor, error
    integer(MPI_ADDRESS_KIND) :: largest_tag
    logical :: found
    do index = 1, command_argument_count(), 2
      call get_command_argument(index, word)
      select case (word)
      case ('-n'); order = whole_number(index + 1)
      case ('-b'); width = whole_number(index + 1)
      case ('-p'); grid_rows = whole_number(index + 1)
      case ('-h'); call leave(0, '')
      case default; call leave(2, 'an option is unknown: ' // trim(word))
      end select
    end do
    if (grid_rows == 0) then
      do divisor = 1, int(sqrt(real(ranks)))
        if (mod(ranks, divisor) == 0) grid_rows = divisor
      end do
    end if
    if (mod(ranks, grid_rows) /= 0) call leave(2, '-p must divide the number of ranks')
    grid_columns = ranks / grid_rows
    width = min(width, order)
    tiles = (order + width - 1) / width
    call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, largest_tag, found, error)
    if (int(tiles, int64)**2 > largest_tag) then
      call leave(2, 'there are more tiles than MPI has tags: take larger ones (-b)')
    end if
  end subroutine read_options
end module factorisation

program cholesky
  use factorisation
  implicit none
  integer :: error, threads
  real(real_kind) :: start, seconds, wrong
  call start_mpi('cholesky', usage)
  call read_options()
  call make_matrix()
  failure = 0
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
  call MPI_Allreduce(MPI_IN_PLACE, failure, 1, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, error)
  wrong = residual()
  if (.not. wrong < 10) failure = 1
  if (rank == 0) then
    print '(a,i0,a,i0,a,i0,a,i0,a,i0,a,f0.4,a,f0.2,a,es9.2,2a)', 'cholesky: n ', order, &
      ', tiles of ', width, ', ', grid_rows, ' x ', grid_columns, ' ranks, ', threads, &
      ' threads each: ', seconds, ' s, ', real(order, real_kind)**3 / 3.0e9_real_kind / seconds, &
      ' Gflop/s, residual', wrong, ': ', merge('right', 'WRONG', failure == 0)
  end if
  call MPI_Finalize(error)
  if (failure /= 0) stop 1
end program cholesky
