! SPDX-License-Identifier: BSD-3-Clause
! command_line.h in Fortran: how the programs start, and how they refuse.
module command_line
  use, intrinsic :: iso_fortran_env, only: error_unit, output_unit
  use mpi
  implicit none
  integer :: rank, ranks
  character(:), allocatable, private :: name, lines(:)

contains

  subroutine start_mpi(its_name, its_usage)
    character(*), intent(in) :: its_name, its_usage(:)
    integer :: provided, error
    name = its_name
    lines = its_usage
    call MPI_Init_thread(MPI_THREAD_MULTIPLE, provided, error)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
    if (provided /= MPI_THREAD_MULTIPLE) call leave(2, 'this MPI has no MPI_THREAD_MULTIPLE')
  end subroutine start_mpi

  ! Ends the program on all ranks, which have the same words. Rank 0 says why.
  subroutine leave(code, why)
    integer, intent(in) :: code
    character(*), intent(in) :: why
    integer :: error, unit, line
    unit = merge(output_unit, error_unit, code == 0)
    if (rank == 0) then
      if (why /= '') write(unit, '(3a)') name, ': ', why
      do line = 1, size(lines)
        write(unit, '(a)') trim(lines(line))
      end do
    end if
    call MPI_Finalize(error)
    stop code, quiet=.true.
  end subroutine leave

  integer function whole_number(index)
    integer, intent(in) :: index
    character(32) :: word
    integer :: error
    call get_command_argument(index, word)
    if (word == '' .or. verify(trim(word), '0123456789') /= 0) word = '0'
    read(word, *, iostat=error) whole_number
    if (error /= 0) whole_number = 0
    if (whole_number < 1 .or. whole_number > 1000000) then
      call leave(2, 'a number must be between 1 and 1000000')
    end if
  end function whole_number
end module command_line
