# SPDX-License-Identifier: BSD-3-Clause
"""The observation of each call of MPI, for export_calls.py: which calls are refused in an event
handler (those of calls.def, and their kin), which arguments describe messages and memory, for the
trace and for IMBREX_CHECK, and which calls send, for the policies that learn this.

Waits, tests and probes report themselves: only they know what has become of a request that stands
for a receive of imbrex's own. So do collectives (interpose.cpp, from calls.def): their buffers are
looked at once MPI has accepted the arguments.
"""
import re

import calls_doc

# Where the arguments stand that describe a message: buffer, count, type, peer, tag. None: the call
# has no such argument. In all of these the request or the status comes last.
#    names                     what goes out    what comes in          communicator
MESSAGES = [
    (r"I?[sbr]?send(_init)?",  (0, 1, 2, 3, 4), None,                  5),
    (r"I?recv(_init)?",        None,            (0, 1, 2, 3, 4),       5),
    (r"I?mrecv",               None,            (0, 1, 2, None, None), None),
    (r"I?sendrecv",            (0, 1, 2, 3, 4), (5, 6, 7, 8, 9),       10),
    (r"I?sendrecv_replace",    (0, 1, 2, 3, 4), (0, 1, 2, 5, 6),       7),
]
COLLECTIVE = (r"(neighbor_)?(barrier|bcast|gatherv?|scatterv?|allgatherv?|alltoall[vw]?|reduce|"
              r"allreduce|reduce_scatter(_block)?|scan|exscan)")
# Other notices: names, and the lines before and after the call. {3} is the fourth argument,
# {comm} the one of that type.
OTHERS = [
    (r"Start", "observed::starting(1, {0})", "observed::started(code, 1, {0})"),
    (r"Startall", "observed::starting({0}, {1})", "observed::started(code, {0}, {1})"),
    (r"Request_free", "observed::freeing({0})", ""),
    (r"Wait", 'observed::waits("MPI_Wait", WaitsFor::all, 1, {0})', ""),
    (r"Waitall", 'observed::waits("MPI_Waitall", WaitsFor::all, {0}, {1})', ""),
    (r"Waitany", 'observed::waits("MPI_Waitany", WaitsFor::any, {0}, {1})', ""),
    (r"Waitsome", 'observed::waits("MPI_Waitsome", WaitsFor::some, {0}, {1})', ""),
    (r"Psend_init", 'observed::unrecorded("partitioned messages")',
     "sending_calls::note_persistent(code, {request})"),
    (r"Precv_init", 'observed::unrecorded("partitioned messages")', ""),
    (COLLECTIVE + "_init",
     'observed::unrecorded("persistent collectives")', ""),
    (r"R?(put|get|accumulate|get_accumulate)|Fetch_and_op|Compare_and_swap",
     'observed::unrecorded("one-sided operations")', ""),
    (r"File_i?(read|write)(_at)?(_all|_shared|_ordered)?(_begin)?",
     'observed::unrecorded("operations on files")', ""),
    (r"Pready(_range|_list)?", "sending_calls::part()", ""),
    (r"I?(bcast|scatterv?)", "sending_calls::from_root({root}, {comm})", ""),
    (r"I?(gatherv?|reduce)", "sending_calls::to_root({root}, {comm})", ""),
    (r"I?(neighbor_)?(allgatherv?|alltoall[vw]?)|I?(allreduce|reduce_scatter(_block)?|scan|exscan)",
     "sending_calls::collective()", ""),
]
# What the flight recorder keeps beside messages.
LOCKS = r"Win_(lock(_all)?|fence|start|wait|flush(_all)?|unlock(_all)?)"
# Locks of windows, for reports: the lines before the call and around its result.
WINDOW_LOCKS = {
    "Win_lock": ("ask({3}, {1}, {0} == MPI_LOCK_EXCLUSIVE)", "asked({code}, {3}, {1})"),
    "Win_lock_all": ("ask({1}, window_locks::Lock::all, false)",
                     "asked({code}, {1}, window_locks::Lock::all)"),
    "Win_unlock": (None, "gave_back({code}, {1}, {0})"),
    "Win_unlock_all": (None, "gave_back({code}, {0}, window_locks::Lock::all)"),
}
# What communicates and does not stand in calls.def, since it does not block.
ALSO_REFUSED = (r"Isendrecv(_replace)?|Start(all)?|Pready(_range|_list)?|Parrived|Cancel|"
                r"Request_(free|get_status(_any|_some|_all)?)|"
                r"R?(put|get|accumulate|get_accumulate)|Fetch_and_op|Compare_and_swap")


def refused_names():
    """The names, without MPI_ and _c, of the calls that communicate."""
    names = set()
    for _, kind, name, twin in calls_doc.read_table():
        names |= {name, *(one.strip() for one in (twin or "").split("+"))}
        names |= {one.removeprefix("MPI_") for one in calls_doc.inits(kind, name)}
    return names


REFUSED = refused_names()


def is_refused(plain):
    return plain in REFUSED or re.fullmatch(ALSO_REFUSED, plain, re.IGNORECASE)


# Calls whose return shows nothing of other ranks: they only begin something, or are a send that MPI
# may buffer. After any other call the caller follows everything before it on all ranks.
LOCAL = (r"I(?!probe|mprobe|ntercomm).*|Send|[BR]send|.*_init|Start(all)?|"
         r"Pready(_range|_list)?|Cancel|Request_free|R?(put|get|accumulate|get_accumulate)|"
         r"Fetch_and_op|Compare_and_swap")
# Calls that complete requests: how many, and which.
OF_REQUESTS = [(r"Wait|Test", ("1", "{0}")), (r"(Wait|Test)(all|any|some)", ("{0}", "{1}"))]


def of_order(plain, names):
    """The lines before and after a call that may depend on other ranks, for the order of tasks."""
    if not is_refused(plain) or re.fullmatch(LOCAL, plain):
        return [], []
    row = row_of(OF_REQUESTS, plain)
    if row is None:
        return [], ["observed::follows(check::on());"]
    count, requests = (text.format(*names) for text in row[1])
    return ([f"const bool nonlocal = observed::are_nonlocal({count}, {requests});"],
            ["observed::follows(nonlocal);"])


def row_of(table, plain):
    return next((row for row in table if re.fullmatch(row[0], plain, re.IGNORECASE)), None)


def call_of(name, names, places, comm, kind, variable):
    """A line that makes what check, trace and reports know of the message."""
    of = ["Call::none" if place is None else names[place] for place in places]
    where = "MPI_COMM_NULL" if comm is None else names[comm]
    at_once = ", true" if re.match("I", name) else ""
    return (f'const Call {variable}{{"MPI_{name}", {where}, {of[3]}, {of[4]}, {of[1]}, {of[2]}, '
            f"Kind::{kind}{at_once}}};")


def of_messages(name, plain, names):
    """The lines before the call, and after it, when `code` is known; None if the call has no
    message."""
    row = row_of(MESSAGES, plain)
    if row is None:
        return None
    _, out, into, comm = row
    last = names[-1]
    begins, prepares = plain.startswith("I"), plain.endswith("_init")
    before, after = [], []
    if out:
        before.append(call_of(name, names, out, comm, "send", "out"))
        exchanges = into is not None and not begins
        if not prepares:
            before.append("const std::uint32_t number = "
                          f"observed::{'exchanges' if exchanges else 'sends'}(out);")
            if begins and not into:
                after.append(f"observed::sent(code, {last}, number);")
            else:  # nobody waits for the send of MPI_Isendrecv alone
                after.append("observed::exchanged(number);" if exchanges else "(void)number;")
    if into:
        before.append(call_of(name, names, into, comm, "receive", "in"))
        if not prepares:
            before.append("observed::receives(in);")
    if plain.lower().endswith("mrecv"):
        message = names[3]
        before.append(f"const Members* const from = observed::taken({message});")
        if begins:
            after.append(f"observed::takes(code, {last}, from);")
    # Memory that serves both is listed as the receive's only: it must not be in its own way.
    reads = out if out and not (into and into[0] == out[0]) else None
    if prepares:
        if out:
            after.append(f"observed::prepared(code, {last}, out);")
        variable, places, writes = ("out", out, "false") if out else ("in", into, "true")
        after.append(f"(void)check::prepared({variable}, {last}, code, {names[places[0]]}, "
                     f"{writes});")
    elif begins and out and into:
        buffer = names[reads[0]] if reads else "nullptr"
        after.append(f"observed::begun(code, {last}, out, {buffer}, in, {names[into[0]]});")
    elif begins:
        variable, places, writes = ("out", out, "false") if out else ("in", into, "true")
        after.append(f"(void)check::begun({variable}, {last}, code, {names[places[0]]}, {writes});")
    else:
        if reads:
            before.append(f"const check::Guard reads(out, {names[reads[0]]}, false);")
        if into:
            before.append(f"const check::Guard writes(in, {names[into[0]]}, true);")
        # The exchanges receive by a call that reports itself.
        if into and not out:
            before.append(f"observed::Received received({last});")
            after.append(f"received.end(code, {'from' if comm is None else names[comm]});")
    return before, after


def of_others(plain, every, names):
    row = row_of(OTHERS, plain)
    if row is None:
        return None
    of_kind = {"comm": r"MPI_Comm\b", "request": r"MPI_Request\b", "root": r"int root\b"}
    found = {kind: names[i] for kind, form in of_kind.items()
             for i, parameter in enumerate(every) if re.match(form, parameter)}

    def line(text):
        if not text:
            return []
        when = "if (switches.learns_senders) " if text.startswith("sending_calls::") else ""
        return [when + text.format(*names, **found) + ";"]
    return line(row[1]), line(row[2])


def flight_line(name, event, peer, tag, items):
    return (f'imbrex::detail::note_flight(imbrex::detail::FlightEvent::{event}, "MPI_{name}", '
            f"{peer}, {tag}, {items});")


def flown(name, names):
    """The lines that leave an event with the flight recorder, always."""
    plain = re.sub(r"_c$", "", name)
    row = row_of(MESSAGES, plain)
    lines = []
    if row is not None and not plain.endswith("_init"):
        for places, event in ((row[1], "sent"), (row[2], "receive_posted")):
            if places:
                peer, tag = ("-1" if place is None else names[place] for place in places[3:])
                lines.append(flight_line(name, event, peer, tag, names[places[1]]))
    for form, event in (("I?" + COLLECTIVE, "collective"), (LOCKS, "locks")):
        if re.fullmatch(form, plain, re.IGNORECASE):
            lines.append(flight_line(name, event, -1, -1, 0))
    ask = WINDOW_LOCKS.get(name, (None, None))[0]
    return lines + ([f"window_locks::{ask.format(*names)};"] if ask else [])


def result_of(name, names, code):
    """The expression that MPI_name returns. `code`: the one for the result of imbrex_MPI_name."""
    row = WINDOW_LOCKS.get(name)
    return f"window_locks::{row[1].format(*names, code=code)}" if row else code


def observed(name, every, names):
    """The body of a function that reports MPI_name to observers and calls ours; None if no observer
    watches it."""
    plain = re.sub(r"_c$", "", name)
    refused = is_refused(plain)
    notice = of_messages(name, plain, names) or of_others(plain, every, names)
    if not refused and notice is None:
        return None
    before, after = (list(lines) for lines in notice or ([], []))
    asked, follows = of_order(plain, names)
    before += asked
    after += follows
    if refused:
        before.insert(0, f'if (refused("MPI_{name}")) return MPI_ERR_OTHER;')
    own = f"imbrex_MPI_{name}({', '.join(names)})"
    end = [f"const int code = {own};", *after, "return code;"] if after else [f"return {own};"]
    return "\n".join("  " + line for line in [*before, *end])
