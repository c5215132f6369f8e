! SPDX-License-Identifier: BSD-3-Clause
! imbrex.h for Fortran: what its functions do stands there. Bodies of tasks and progress functions
! are bind(C) functions, given by c_funloc(); objects are named by c_loc().
!
! Each function returns IMBREX_SUCCESS or another code; imbrex_message() then says why. Texts are
! copied, without trailing blanks.
module imbrex
  use, intrinsic :: iso_c_binding
  implicit none
  private

  enum, bind(C)
    enumerator :: IMBREX_SUCCESS = 0, IMBREX_ERR_USE, IMBREX_ERR_TASK, IMBREX_ERR_MPI, &
      IMBREX_ERR_MEMORY, IMBREX_ERR_CANCELLED
  end enum
  enum, bind(C)
    enumerator :: KIND_IN = 0, KIND_OUT, KIND_INOUT, KIND_MUTEXINOUTSET, KIND_INOUTSET, &
      KIND_AFTER, KIND_NAMED, KIND_RANGE = 16
  end enum
  enum, bind(C)
    enumerator :: IMBREX_PLACE_MEMORY = 0, IMBREX_PLACE_CACHE, IMBREX_PLACE_NVGPU, &
      IMBREX_PLACE_AMGPU, IMBREX_PLACE_FPGA, IMBREX_PLACE_PGAS
  end enum
  public :: IMBREX_SUCCESS, IMBREX_ERR_USE, IMBREX_ERR_TASK, IMBREX_ERR_MPI, IMBREX_ERR_MEMORY, &
    IMBREX_ERR_CANCELLED
  public :: IMBREX_PLACE_MEMORY, IMBREX_PLACE_CACHE, IMBREX_PLACE_NVGPU, IMBREX_PLACE_AMGPU, &
    IMBREX_PLACE_FPGA, IMBREX_PLACE_PGAS

  ! One access of a task; made by the functions below.
  type, bind(C), public :: imbrex_access
    integer(c_int) :: kind = 0
    type(c_ptr) :: object = c_null_ptr
    integer(c_int64_t) :: number = 0
  end type

  type, bind(C) :: task_spec
    type(c_ptr) :: name, file
    integer(c_int) :: line = 0
    type(c_funptr) :: body
    type(c_ptr) :: argument
    integer(c_size_t) :: argument_bytes = 0, result_bytes = 0
    integer(c_int) :: access_count = 0
    type(c_ptr) :: accesses = c_null_ptr
    integer(c_int) :: priority = 0, tied = 0, kept = 1, run_after_failure = 0, &
      decides = 0
  end type

  public :: imbrex_in, imbrex_out, imbrex_inout, imbrex_mutexinoutset, imbrex_inoutset, &
    imbrex_after, imbrex_named
  public :: imbrex_spawn, imbrex_release, imbrex_release_range, imbrex_finish_begin, &
    imbrex_finish_begin_stoppable, imbrex_request_stop, imbrex_stop_requested, &
    imbrex_place_count, imbrex_current_place, imbrex_local_place, imbrex_current_worker, &
    imbrex_parent_place, imbrex_place_parent, imbrex_place_level, imbrex_place_kind, &
    imbrex_place_children, &
    imbrex_finish_end, imbrex_taskwait, imbrex_yield, imbrex_future_wait, imbrex_future_get, &
    imbrex_future_ready, &
    imbrex_future_free, imbrex_when_all, imbrex_when_any, imbrex_future_index, &
    imbrex_promise_create, imbrex_promise_set, imbrex_promise_free, imbrex_event_create, &
    imbrex_event_set, imbrex_event_ready, imbrex_event_wait, imbrex_event_release_after, &
    imbrex_event_release_object_after, imbrex_event_release_range_after, &
    imbrex_event_free, imbrex_iterate, imbrex_iteration, imbrex_stop_iterating, &
    imbrex_future_of_name, imbrex_trigger, imbrex_progress_register, &
    imbrex_message, imbrex_version

  ! Handles, of type(c_ptr), are passed by value where C takes them by value.
  interface
    integer(c_int) function imbrex_release(object) bind(C)
      import
      type(c_ptr), value :: object
    end function
    integer(c_int) function imbrex_release_range(begin, bytes) bind(C)
      import
      type(c_ptr), value :: begin
      integer(c_size_t), value :: bytes
    end function
    integer(c_int) function imbrex_finish_end(finish) bind(C)
      import
      type(c_ptr), intent(inout) :: finish
    end function
    integer(c_int) function imbrex_request_stop(finish) bind(C)
      import
      type(c_ptr), value :: finish
    end function
    integer(c_int) function imbrex_stop_requested() bind(C)
      import
    end function
    integer(c_int) function imbrex_taskwait() bind(C)
      import
    end function
    integer(c_int) function imbrex_yield() bind(C)
      import
    end function
    ! The iteration of the running task, from 0 on, as in C; -1: there is no loop.
    integer(c_int64_t) function imbrex_iteration() bind(C)
      import
    end function
    integer(c_int) function imbrex_stop_iterating() bind(C)
      import
    end function
    integer(c_int) function imbrex_place_count() bind(C)
      import
    end function
    integer(c_int) function imbrex_current_place() bind(C)
      import
    end function
    integer(c_int) function imbrex_local_place() bind(C)
      import
    end function
    integer(c_int) function imbrex_current_worker() bind(C)
      import
    end function
    integer(c_int) function imbrex_parent_place() bind(C)
      import
    end function
    integer(c_int) function imbrex_place_parent(place) bind(C)
      import
      integer(c_int), value :: place
    end function
    integer(c_int) function imbrex_place_level(place) bind(C)
      import
      integer(c_int), value :: place
    end function
    integer(c_int) function imbrex_place_kind(place) bind(C)
      import
      integer(c_int), value :: place
    end function
    integer(c_int) function imbrex_place_children(place, children, count) bind(C)
      import
      integer(c_int), value :: place, count
      integer(c_int), intent(out) :: children(*)
    end function
    integer(c_int) function imbrex_future_wait(future) bind(C)
      import
      type(c_ptr), value :: future
    end function
    ! `bytes` bytes to c_loc(value)
    integer(c_int) function imbrex_future_get(future, value, bytes) bind(C)
      import
      type(c_ptr), value :: future, value
      integer(c_size_t), value :: bytes
    end function
    integer(c_int) function imbrex_future_ready(future) bind(C)
      import
      type(c_ptr), value :: future
    end function
    subroutine imbrex_future_free(future) bind(C)
      import
      type(c_ptr), intent(inout) :: future
    end subroutine
    integer(c_int) function imbrex_when_all(count, futures, all) bind(C)
      import
      integer(c_int), value :: count
      type(c_ptr), intent(in) :: futures(*)
      type(c_ptr), intent(out) :: all
    end function
    integer(c_int) function imbrex_when_any(count, futures, first) bind(C)
      import
      integer(c_int), value :: count
      type(c_ptr), intent(in) :: futures(*)
      type(c_ptr), intent(out) :: first
    end function
    ! From 0, as in C.
    integer(c_int) function imbrex_future_index(first) bind(C)
      import
      type(c_ptr), value :: first
    end function
    integer(c_int) function imbrex_promise_create(bytes, promise, future) bind(C)
      import
      integer(c_size_t), value :: bytes
      type(c_ptr), intent(out) :: promise, future
    end function
    integer(c_int) function imbrex_promise_set(promise, value) bind(C)
      import
      type(c_ptr), value :: promise, value
    end function
    subroutine imbrex_promise_free(promise) bind(C)
      import
      type(c_ptr), intent(inout) :: promise
    end subroutine
    integer(c_int) function imbrex_event_create(event) bind(C)
      import
      type(c_ptr), intent(out) :: event
    end function
    integer(c_int) function imbrex_event_set(event) bind(C)
      import
      type(c_ptr), value :: event
    end function
    integer(c_int) function imbrex_event_ready(event) bind(C)
      import
      type(c_ptr), value :: event
    end function
    integer(c_int) function imbrex_event_wait(event) bind(C)
      import
      type(c_ptr), value :: event
    end function
    integer(c_int) function imbrex_event_release_after(event) bind(C)
      import
      type(c_ptr), value :: event
    end function
    integer(c_int) function imbrex_event_release_object_after(event, object) bind(C)
      import
      type(c_ptr), value :: event, object
    end function
    integer(c_int) function imbrex_event_release_range_after(event, begin, bytes) bind(C)
      import
      type(c_ptr), value :: event, begin
      integer(c_size_t), value :: bytes
    end function
    subroutine imbrex_event_free(event) bind(C)
      import
      type(c_ptr), intent(inout) :: event
    end subroutine
  end interface

  ! What needs a wrapper: texts, and arguments that may be left out.
  interface
    integer(c_int) function c_spawn(spec, future) bind(C, name="imbrex_spawn")
      import
      type(task_spec), intent(in) :: spec
      type(c_ptr), value :: future
    end function
    integer(c_int) function c_spawn_at(spec, place, future) bind(C, name="imbrex_spawn_at")
      import
      type(task_spec), intent(in) :: spec
      integer(c_int), value :: place
      type(c_ptr), value :: future
    end function
    integer(c_int) function c_finish_begin(finish, file, line) bind(C, name="imbrex_finish_begin")
      import
      type(c_ptr), intent(out) :: finish
      type(c_ptr), value :: file
      integer(c_int), value :: line
    end function
    integer(c_int) function c_finish_begin_stoppable(finish, on_error, file, line) &
        bind(C, name="imbrex_finish_begin_stoppable")
      import
      type(c_ptr), intent(out) :: finish
      integer(c_int), value :: on_error
      type(c_ptr), value :: file
      integer(c_int), value :: line
    end function
    integer(c_int) function c_iterate(count, period, body, argument, file, line) &
        bind(C, name="imbrex_iterate")
      import
      integer(c_int64_t), value :: count, period
      type(c_funptr), value :: body
      type(c_ptr), value :: argument, file
      integer(c_int), value :: line
    end function
    integer(c_int) function c_named(name, number, future, file, line) bind(C, name="imbrex_named")
      import
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int64_t), value :: number
      type(c_ptr), intent(out) :: future
      type(c_ptr), value :: file
      integer(c_int), value :: line
    end function
    integer(c_int) function c_trigger(name, number) bind(C, name="imbrex_trigger")
      import
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int64_t), value :: number
    end function
    integer(c_int) function c_progress_register(function, argument, file, line) &
        bind(C, name="imbrex_progress_register")
      import
      type(c_funptr), value :: function
      type(c_ptr), value :: argument, file
      integer(c_int), value :: line
    end function
    type(c_ptr) function c_keep(text) bind(C, name="imbrex_keep")
      import
      character(kind=c_char), intent(in) :: text(*)
    end function
    type(c_ptr) function c_message() bind(C, name="imbrex_message")
      import
    end function
    type(c_ptr) function c_version() bind(C, name="imbrex_version")
      import
    end function
    integer(c_size_t) function c_strlen(text) bind(C, name="strlen")
      import
      type(c_ptr), value :: text
    end function
  end interface

contains

  ! ---- accesses ----

  ! With `bytes`: a range, which conflicts with all that it overlaps.
  type(imbrex_access) function imbrex_in(object, bytes)
    type(c_ptr), intent(in) :: object
    integer(c_size_t), intent(in), optional :: bytes
    imbrex_in = access_to(KIND_IN, object, bytes)
  end function
  type(imbrex_access) function imbrex_out(object, bytes)
    type(c_ptr), intent(in) :: object
    integer(c_size_t), intent(in), optional :: bytes
    imbrex_out = access_to(KIND_OUT, object, bytes)
  end function
  type(imbrex_access) function imbrex_inout(object, bytes)
    type(c_ptr), intent(in) :: object
    integer(c_size_t), intent(in), optional :: bytes
    imbrex_inout = access_to(KIND_INOUT, object, bytes)
  end function
  type(imbrex_access) function imbrex_mutexinoutset(object, bytes)
    type(c_ptr), intent(in) :: object
    integer(c_size_t), intent(in), optional :: bytes
    imbrex_mutexinoutset = access_to(KIND_MUTEXINOUTSET, object, bytes)
  end function
  type(imbrex_access) function imbrex_inoutset(object, bytes)
    type(c_ptr), intent(in) :: object
    integer(c_size_t), intent(in), optional :: bytes
    imbrex_inoutset = access_to(KIND_INOUTSET, object, bytes)
  end function
  ! `future` is a handle.
  type(imbrex_access) function imbrex_after(future)
    type(c_ptr), intent(in) :: future
    imbrex_after = imbrex_access(KIND_AFTER, future, 0)
  end function
  ! The named event, as an access; imbrex_future_of_name() gives its future.
  type(imbrex_access) function imbrex_named(name, number)
    character(*), intent(in) :: name
    integer(c_int64_t), intent(in), optional :: number
    imbrex_named = imbrex_access(KIND_NAMED, c_keep(trim(name) // c_null_char), 0)
    if (present(number)) imbrex_named%number = number
  end function

  type(imbrex_access) function access_to(kind, object, bytes)
    integer(c_int), intent(in) :: kind
    type(c_ptr), intent(in) :: object
    integer(c_size_t), intent(in), optional :: bytes
    access_to = imbrex_access(kind, object, 0)
    if (.not. present(bytes)) return
    access_to%kind = kind + KIND_RANGE
    access_to%number = bytes
  end function

  ! ---- what takes texts ----

  ! The body gets `argument`, or, if argument_bytes is given, a copy of so many bytes there. Places
  ! are counted from 0, as in C.
  integer(c_int) function imbrex_spawn(name, body, argument, accesses, future, argument_bytes, &
      result_bytes, priority, tied, file, line, run_after_failure, place, decides)
    character(*), intent(in) :: name
    type(c_funptr), value :: body  ! by value: gfortran puts constants to refer to into .rodata
    type(c_ptr), intent(in), optional :: argument
    type(imbrex_access), intent(in), target, optional :: accesses(:)
    type(c_ptr), intent(out), target, optional :: future
    integer(c_size_t), intent(in), optional :: argument_bytes, result_bytes
    integer(c_int), intent(in), optional :: priority, line, place
    logical, intent(in), optional :: tied, run_after_failure, decides
    character(*), intent(in), optional :: file
    type(task_spec) :: spec
    type(imbrex_access), allocatable, target :: copy(:)
    type(c_ptr) :: to_future

    spec%name = c_keep(trim(name) // c_null_char)
    spec%file = kept(file)
    spec%body = body
    spec%argument = c_null_ptr
    to_future = c_null_ptr
    if (present(argument)) spec%argument = argument
    if (present(accesses)) then
      copy = accesses
      spec%access_count = size(copy)
      if (size(copy) > 0) spec%accesses = c_loc(copy(1))
    end if
    if (present(future)) to_future = c_loc(future)
    if (present(argument_bytes)) spec%argument_bytes = argument_bytes
    if (present(result_bytes)) spec%result_bytes = result_bytes
    if (present(priority)) spec%priority = priority
    if (present(tied)) spec%tied = merge(1, 0, tied)
    if (present(run_after_failure)) spec%run_after_failure = merge(1, 0, run_after_failure)
    if (present(decides)) spec%decides = merge(1, 0, decides)
    if (present(line)) spec%line = line
    if (present(place)) then
      imbrex_spawn = c_spawn_at(spec, place, to_future)
    else
      imbrex_spawn = c_spawn(spec, to_future)
    end if
  end function

  integer(c_int) function imbrex_finish_begin(finish, file, line)
    type(c_ptr), intent(out) :: finish
    character(*), intent(in), optional :: file
    integer(c_int), intent(in), optional :: line
    imbrex_finish_begin = c_finish_begin(finish, kept(file), line_or_0(line))
  end function

  ! Its tasks can be stopped: by imbrex_request_stop(), and, if on_error is true, by the first
  ! failure of one.
  integer(c_int) function imbrex_finish_begin_stoppable(finish, on_error, file, line)
    type(c_ptr), intent(out) :: finish
    logical, intent(in), optional :: on_error
    character(*), intent(in), optional :: file
    integer(c_int), intent(in), optional :: line
    integer(c_int) :: stops
    stops = 0
    if (present(on_error)) stops = merge(1_c_int, 0_c_int, on_error)
    imbrex_finish_begin_stoppable = &
      c_finish_begin_stoppable(finish, stops, kept(file), line_or_0(line))
  end function

  ! The body is a bind(C) function of the argument and of the iteration, an integer(c_int64_t), both
  ! by value. It is called for one period, and creates the tasks that run in every iteration.
  integer(c_int) function imbrex_iterate(count, body, argument, period, file, line)
    integer(c_int64_t), intent(in) :: count
    type(c_funptr), value :: body
    type(c_ptr), intent(in), optional :: argument
    integer(c_int64_t), intent(in), optional :: period
    character(*), intent(in), optional :: file
    integer(c_int), intent(in), optional :: line
    type(c_ptr) :: given
    integer(c_int64_t) :: each
    given = c_null_ptr
    if (present(argument)) given = argument
    each = 1
    if (present(period)) each = period
    imbrex_iterate = c_iterate(count, each, body, given, kept(file), line_or_0(line))
  end function

  integer(c_int) function imbrex_future_of_name(name, future, number)
    character(*), intent(in) :: name
    type(c_ptr), intent(out) :: future
    integer(c_int64_t), intent(in), optional :: number
    imbrex_future_of_name = c_named(trim(name) // c_null_char, number_or_0(number), future, &
      c_null_ptr, 0)
  end function

  integer(c_int) function imbrex_trigger(name, number)
    character(*), intent(in) :: name
    integer(c_int64_t), intent(in), optional :: number
    imbrex_trigger = c_trigger(trim(name) // c_null_char, number_or_0(number))
  end function

  integer(c_int) function imbrex_progress_register(function, argument, file, line)
    type(c_funptr), value :: function
    type(c_ptr), intent(in), optional :: argument
    character(*), intent(in), optional :: file
    integer(c_int), intent(in), optional :: line
    type(c_ptr) :: given
    given = c_null_ptr
    if (present(argument)) given = argument
    imbrex_progress_register = c_progress_register(function, given, kept(file), line_or_0(line))
  end function

  ! Why the last call failed.
  function imbrex_message() result(message)
    character(:), allocatable :: message
    message = text_of(c_message())
  end function

  ! The version of the library that the program runs with.
  function imbrex_version() result(version)
    character(:), allocatable :: version
    version = text_of(c_version())
  end function

  function text_of(start) result(copy)
    type(c_ptr), intent(in) :: start
    character(:), allocatable :: copy
    character(kind=c_char), pointer :: text(:)
    integer :: i
    call c_f_pointer(start, text, [c_strlen(start)])
    allocate (character(size(text)) :: copy)
    do i = 1, size(text)
      copy(i:i) = text(i)
    end do
  end function

  type(c_ptr) function kept(text)
    character(*), intent(in), optional :: text
    kept = c_null_ptr
    if (present(text)) kept = c_keep(trim(text) // c_null_char)
  end function
  integer(c_int) function line_or_0(line)
    integer(c_int), intent(in), optional :: line
    line_or_0 = 0
    if (present(line)) line_or_0 = line
  end function
  integer(c_int64_t) function number_or_0(number)
    integer(c_int64_t), intent(in), optional :: number
    number_or_0 = 0
    if (present(number)) number_or_0 = number
  end function
end module
