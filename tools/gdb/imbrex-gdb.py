# SPDX-License-Identifier: BSD-3-Clause
"""Commands for gdb, for a live process or a core file: `imbrex tasks`, `imbrex stack ID`.

    (gdb) source imbrex-gdb.py

Reads the runtime's own structures, so it belongs to the libimbrex.so it came with, and needs that
one's debug information: src/sched/run/runtime_state.hpp, src/task/descriptor.hpp,
    src/fiber/fiber.hpp and
src/base/slab.hpp say what is read here.
"""
import re

import gdb
import gdb.unwinder

STATES = {"created": "not started", "ended": "body ended"}  # the others speak for themselves


# ---- the runtime's structures ------------------------------------------------------------------

def runtime():
    address = life_address()
    life = word_at(address) if address is not None else 0
    if int(life) == 0:
        raise gdb.GdbError("imbrex: no runtime runs in this process")
    pointer = word_at(int(life))  # its first member: gdb does not always find the type itself
    if int(pointer) == 0:
        raise gdb.GdbError("imbrex: no runtime runs in this process")
    runtime_type = gdb.lookup_type("imbrex::sched::RuntimeState").pointer()
    return gdb.Value(int(pointer)).cast(runtime_type).dereference()


def life_address():
    """Of the pointer in life(), src/sched/life/start.cpp; None where the library is not loaded yet.
    Its debug information, and even its name, change where the optimiser inlines the function or
    moves it between units: hence by its symbol."""
    text = gdb.execute("info variables never_destroyed", to_string=True)
    found = [line.split()[0] for line in text.splitlines()
             if line.startswith("0x") and "sched" in line and "life" in line
             and not re.search("guard|_ZGV", line)]
    if found:
        return int(found[0], 16)
    try:
        return int(gdb.parse_and_eval(
            "(unsigned long)&'imbrex::sched::life()::never_destroyed'"))
    except gdb.error as error:
        raise gdb.GdbError(f"imbrex: no libimbrex.so with its symbols here ({error})")


def loaded(atomic):
    return atomic["_M_i"]


def elements(vector):
    first, last = vector["_M_impl"]["_M_start"], vector["_M_impl"]["_M_finish"]
    for index in range(int(last - first)):
        yield (first + index).dereference()


def all_tasks():
    """Every descriptor in use, by id; slots that are free say so in their state."""
    pool = runtime()["task_slots"]
    task_type = gdb.lookup_type("imbrex::task::Task")
    slots = []
    for chunk in elements(pool["chunks_"]):
        memory, bytes_each = int(chunk["memory"]), int(chunk["slot_bytes"])
        slots += range(memory, memory + int(chunk["used"]), bytes_each)
    slots += [int(slot) for slot in elements(pool["large_"])]
    tasks = []
    for slot in slots:
        task = gdb.Value(slot).cast(task_type.pointer()).dereference()
        if state_of(task) != "free":
            tasks.append(task)
    return sorted(tasks, key=lambda task: int(task["id"]))


def state_of(task):
    return str(loaded(task["state"])).rpartition("::")[2]


def text_of(pointer, otherwise):
    return pointer.string(errors="replace") if int(pointer) else otherwise


def site_of(where):
    site = where["_M_impl"]
    if int(site) == 0:
        return "?"
    if int(site["_M_line"]) == 0:
        return place_of_code(word_at(int(site) + site.dereference().type.sizeof)) \
            if is_of_code(site) else "?"
    return f"{text_of(site['_M_file_name'], '?')}:{int(site['_M_line'])}"


def is_of_code(site):
    """detail::place_of_code(): the code's address follows the place."""
    try:
        mark = int(gdb.parse_and_eval("(unsigned long)&'imbrex::detail::code_mark'"))
    except gdb.error:
        return False
    return int(site["_M_function_name"]) == mark


def place_of_code(code):
    line = gdb.find_pc_line(int(code))
    if line.symtab is None or line.line == 0:
        return "?"
    return f"{line.symtab.filename}:{line.line}"


def construct_of(task):
    """The function that the compiler has made of a construct of OpenMP; None for other tasks."""
    ops = task["ops"]
    if text_of(task["name"], "") != "task" or int(ops) == 0 or int(ops["code"]) == 0:
        return None
    try:
        explicit = gdb.lookup_type("imbrex::omp::(anonymous namespace)::Explicit").pointer()
    except gdb.error:  # without debug information of libgomp.so.1
        return None
    closure = gdb.Value(int(task.address) + task.type.sizeof).cast(explicit)
    return int(closure["function"]) or None


def name_of(task):
    code = construct_of(task)
    block = gdb.block_for_pc(code) if code is not None else None
    if block is not None and block.function is not None:
        function = block.function.name.split("._omp_fn")[0]
        return f"{function}:{gdb.find_pc_line(code).line}"
    return text_of(task["name"], "main" if task["root"] else "?")


def place_of(task):
    code = construct_of(task)
    return place_of_code(code) if code is not None else site_of(task["where"])


# ---- what a task waits for ---------------------------------------------------------------------

def waits_of(tasks):
    """Task address -> text."""
    edges = predecessors(tasks)
    return {int(task.address): wait_of(task, edges.get(int(task.address), [])) for task in tasks}


def wait_of(task, before):
    state = state_of(task)
    if state == "created":
        return ", ".join(before) or "its creator, a future or a mutex"
    if state in ("ready", "resumable"):
        return "a worker"
    if state == "ended":
        holds = int(loaded(task["holds"]))
        return f"{holds} events given to release_after" if holds else "its descendants"
    if state == "running":
        worker = worker_of(task)
        return f"- (runs on worker {worker})" if worker is not None else "an inner task, in place"
    fiber = fiber_of(task)
    return reason_of(fiber["reason"]) if fiber is not None else "?"


def predecessors(tasks):
    """Task address -> the tasks whose events it waits for: edges are stored with the predecessor,
    as a stack of waiters whose lowest four bits are flags."""
    waiter_type = gdb.lookup_type("imbrex::task::Waiter").pointer()
    edges = {}
    for task in tasks:
        waiter = int(loaded(task["event"]["head"])) & ~15
        while waiter:
            entry = gdb.Value(waiter).cast(waiter_type).dereference()
            if int(entry["task"]):
                edges.setdefault(int(entry["task"]), []).append(
                    f"task {int(task['id'])} \"{name_of(task)}\"")
            waiter = int(entry["next"])
    return edges


def fiber_of(task):
    if int(task["fiber"]) == 0:
        return None
    return task["fiber"].cast(gdb.lookup_type("imbrex::fiber::Fiber").pointer()).dereference()


def reason_of(pointer):
    if int(pointer) == 0:
        return "?"
    reason = pointer.cast(gdb.lookup_type("imbrex::detail::WaitReason").pointer()).dereference()
    if int(reason["completion"]):
        return completion_text(reason["completion"])
    text = text_of(reason["what"], "?")
    if str(reason["kind"]).endswith("::mpi"):
        text += (f" (peer {int(reason['peer'])}, tag {int(reason['tag'])}, "
                 f"{int(reason['bytes'])} bytes)")
    return text


def completion_text(pointer):
    kind = str(pointer["kind"]).rpartition("::")[2]
    if kind == "task":
        task = pointer.cast(gdb.lookup_type("imbrex::task::Task").pointer()).dereference()
        return f"task {int(task['id'])} \"{name_of(task)}\""
    if kind == "promise":
        promise_type = gdb.lookup_type("imbrex::detail::PromiseState")
        promise = pointer.cast(promise_type.pointer()).dereference()
        return f"promise \"{text_of(promise['name'], '?')}\" ({site_of(promise['where'])})"
    return "when_all or when_any"


def worker_of(task):
    workers = runtime()["workers"]
    array_type = gdb.lookup_type("imbrex::sched::Worker").pointer().pointer().pointer()
    first = workers["workers_"].address.cast(array_type).dereference()  # an array of pointers
    for index in range(int(workers["count_"]["_M_i"])):
        worker = (first + index).dereference().dereference()
        if int(worker["task"]["task_"]) == int(task.address):
            return int(worker["id"])
    return None


# ---- stacks of suspended tasks -----------------------------------------------------------------

# Places where Boost.Context leaves the registers, from the address in Fiber::context on: name ->
# offset; then the bytes that it takes off the stack.
SAVED = {
    "i386:x86-64": ({"r12": 8, "r13": 16, "r14": 24, "r15": 32, "rbx": 40, "rbp": 48, "rip": 56},
                    64, "rsp", "rip"),
    "aarch64": ({**{f"x{19 + i}": 0x40 + 8 * i for i in range(12)}, "pc": 0xa0},
                0xb0, "sp", "pc"),
}


class Suspended(gdb.unwinder.Unwinder):
    """While enabled, the innermost frame of the selected thread seems to have been called by a
    suspended fiber: so gdb unwinds that one, also in a core file, where no register can be set."""

    def __init__(self):
        super().__init__("imbrex suspended task")
        self.enabled = False
        self.context = self.top = 0

    def __call__(self, frame):
        architecture = frame.architecture().name()
        registers, size, sp, pc = SAVED[architecture]
        if (int(frame.read_register(sp)), int(frame.read_register(pc))) != self.top:
            return None
        # Below the fiber's own frames, as a callee would be.
        info = frame.create_unwind_info(FrameId(self.context - 64, self.top[1]))
        for name, offset in registers.items():
            info.add_saved_register(name, word_at(self.context + offset))
        info.add_saved_register(sp, gdb.Value(self.context + size))
        return info


class FrameId:
    def __init__(self, sp, pc):
        self.sp, self.pc = gdb.Value(sp), gdb.Value(pc)


def word_at(address):
    return gdb.Value(address).cast(gdb.lookup_type("unsigned long").pointer()).dereference()


unwinder = Suspended()
gdb.unwinder.register_unwinder(None, unwinder, replace=True)


def backtrace(context):
    """gdb's own backtrace of what was left at `context`, line by line."""
    frame = gdb.newest_frame()
    architecture = frame.architecture().name()
    if architecture not in SAVED:
        raise gdb.GdbError(f"imbrex: stacks of suspended tasks: not on {architecture}")
    sp, pc = SAVED[architecture][2:]
    own = 1  # frames of the thread itself that gdb will show first
    while frame.type() == gdb.INLINE_FRAME:
        own, frame = own + 1, frame.older()
    unwinder.top = (int(frame.read_register(sp)), int(frame.read_register(pc)))
    unwinder.context = context
    unwinder.enabled = True
    gdb.invalidate_cached_frames()
    try:
        with_width = gdb.parameter("width")
        gdb.execute("set width 0")
        text = gdb.execute("backtrace", to_string=True)
    finally:
        gdb.execute(f"set width {with_width or 0}")
        unwinder.enabled = False
        gdb.invalidate_cached_frames()
    for line in text.splitlines():
        number, _, rest = line.partition(" ")
        if not number.startswith("#"):
            yield line
        elif int(number[1:]) >= own:
            yield f"#{int(number[1:]) - own:<3}{rest.lstrip()}"


# ---- commands ----------------------------------------------------------------------------------

class Imbrex(gdb.Command):
    """Shows the tasks of a program that uses imbrex: `imbrex tasks`, `imbrex stack ID`."""

    def __init__(self):
        super().__init__("imbrex", gdb.COMMAND_STATUS, gdb.COMPLETE_COMMAND, prefix=True)


class Tasks(gdb.Command):
    """imbrex tasks: every task with its state, name, where it was spawned, what it waits for."""

    def __init__(self):
        super().__init__("imbrex tasks", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        rows = [("ID", "STATE", "NAME", "SPAWNED AT", "WAITS FOR")]
        tasks = all_tasks()
        waits = waits_of(tasks)
        for task in tasks:
            state = state_of(task)
            rows.append((str(int(task["id"])), STATES.get(state, state), f'"{name_of(task)}"',
                         place_of(task), waits[int(task.address)]))
        widths = [max(len(row[column]) for row in rows) for column in range(4)]
        for row in rows:
            cells = [row[column].ljust(widths[column]) for column in range(4)]
            print("  ".join([*cells, row[4]]))
        print(f"{len(rows) - 1} tasks")


class Stack(gdb.Command):
    """imbrex stack ID: the stack of a suspended task; `imbrex tasks` shows the ids."""

    def __init__(self):
        super().__init__("imbrex stack", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        try:
            wanted = int(argument)
        except ValueError:
            raise gdb.GdbError("usage: imbrex stack ID")
        for task in all_tasks():
            if int(task["id"]) == wanted:
                self.show(task)
                return
        raise gdb.GdbError(f"imbrex: no task {wanted}")

    @staticmethod
    def show(task):
        state, title = state_of(task), f"task {int(task['id'])} \"{name_of(task)}\""
        if state == "running":
            raise gdb.GdbError(f"imbrex: {title} is not suspended: `thread apply all backtrace` "
                               "shows it")
        fiber = fiber_of(task)
        if fiber is None:
            raise gdb.GdbError(f"imbrex: {title} has no stack: {STATES.get(state, state)}")
        if int(fiber["context"]) == 0:
            raise gdb.GdbError(f"imbrex: {title} blocks its own thread: `thread apply all "
                               "backtrace` shows it")
        print(f"{title}, {state}, waits for {wait_of(task, [])}")
        for line in backtrace(int(fiber["context"])):
            print(line)


Imbrex()
Tasks()
Stack()
