# SPDX-License-Identifier: BSD-3-Clause
"""The subcommands of `imbrex` that show what IMBREX_TRACE=DIR has recorded."""
import os
import pathlib
import sys
import tempfile

from imbrex_trace import history, otf2_files, page, reader, report, summary, timeline


TRACE = "a trace directory: the value of IMBREX_TRACE in the run"


def add_to(commands):
    line = commands.add_parser("timeline", help="draw a picture (SVG) with one row per worker; "
                               "several runs stand one above the other, on one time scale")
    line.add_argument("dirs", metavar="DIR", nargs="+", help="a trace directory for each run")
    line.add_argument("-o", dest="output", required=True, metavar="FILE", help="the file to write")
    line.add_argument("--title", help="a title above the whole picture")
    line.add_argument("--label", action="append", default=[],
                      help="a title above a run, once for each DIR (default: the directory's name)")
    line.add_argument("--crop", metavar="NAME[,NAME...]",
                      help="show only from the first start to the last end of tasks with this name")
    line.set_defaults(run=run_timeline)

    table = commands.add_parser("summary", help="print time in tasks, idle and overhead for each "
                                "worker; number and mean time of tasks for each name")
    table.add_argument("dir", metavar="DIR", help=TRACE)
    table.add_argument("--crop", metavar="NAME[,NAME...]",
                       help="count only from the first start to the last end of tasks with this "
                            "name")
    table.set_defaults(run=run_summary)

    full = commands.add_parser(
        "report", help="explain where the time went: tables, and a page for the browser",
        description="Prints where the time of one or more runs went, and writes for each run "
        "report.html (one page: timeline, matrix of messages, tables) and report.otf2/ (for other "
        "tools, where Debian's python3-otf2 is there) into its directory.")
    full.add_argument("dirs", metavar="DIR", nargs="+", help=TRACE)
    full.add_argument("--write", metavar="WHAT[,WHAT...]",
                      help="the files to write, of page, otf2; or none (default: all whose "
                      "library is installed)")
    full.add_argument("-o", dest="output", metavar="FOLDER",
                      help="the folder to write to, for a single DIR")
    part = full.add_mutually_exclusive_group()
    part.add_argument("--crop", metavar="NAME[,NAME...]",
                      help="report only from the first start to the last end of tasks with this "
                      "name (default: from the first task to the last, without main's time before "
                      "and after)")
    part.add_argument("--whole", action="store_true", help="report the whole run")
    full.set_defaults(run=run_report)


def run_timeline(options):
    if len(options.label) > len(options.dirs):
        raise reader.TraceError(f"--label given {len(options.label)} times for "
                                f"{len(options.dirs)} directories: at most one for each")
    panels = []
    for position, directory in enumerate(options.dirs):
        label = (options.label[position] if position < len(options.label)
                 else pathlib.Path(directory).resolve().name)
        panels.append(timeline.Panel(label, histories_of(directory, options.crop)))
    write_whole(options.output, timeline.lines(panels, options.title))
    print(f"written: {options.output}: one row for each worker; open it in a browser")


def run_summary(options):
    for line in summary.lines(histories_of(options.dir, options.crop)):
        print(line)


def run_report(options):
    wanted, left_out = wanted_outputs(options.write)
    if options.output and len(options.dirs) > 1:
        raise reader.TraceError(f"-o with {len(options.dirs)} directories: give one, or none to "
                                "write into each directory")
    reports = []
    for directory in options.dirs:
        histories = histories_of(directory, options.crop)
        crops = options.crop is None and not options.whole
        if crops:
            history.crop_to_tasks(histories)
        reports.append(report.make(str(directory), histories, crops))
    written = []
    for one in reports:
        written += write_outputs(one, wanted, pathlib.Path(options.output or one.label))
    for line in report.lines(reports):
        print(line)
    for line in written + left_out:
        print(line)


def wanted_outputs(text):
    """Returns the outputs to write, and a line for each that cannot be written. It runs before the
    work, since d3 may be missing: then --write page is refused, and the default skips the page."""
    wanted = set((text or "page,otf2").split(",")) - {"none"}
    unknown = wanted - {"page", "otf2"}
    if unknown:
        raise reader.TraceError(f"--write {text}: there is no {' or '.join(sorted(unknown))}; "
                                "valid: page, otf2, none")
    if "page" in wanted:
        try:
            page.d3_text()
        except reader.TraceError as missing:
            if text is not None:
                raise
            return wanted - {"page"}, [f"left out: {missing}"]
    return wanted, []


def write_outputs(one, wanted, folder):
    """Lines that say what was written."""
    if "page" in wanted:
        write_whole(folder / "report.html", page.lines(one))
        yield f"written: {folder / 'report.html'}"
    if "otf2" in wanted:
        yield otf2_files.write(one, folder / "report.otf2")


def histories_of(directory, crop):
    ranks = reader.read_run(directory)
    gaps = reader.describe_gaps(ranks)
    if gaps:
        print(f"imbrex: {directory}: {gaps}", file=sys.stderr)
    histories = [history.replay(rank) for rank in ranks]
    if crop is not None:
        history.crop(histories, crop.split(","), directory)
    return histories


def write_whole(path, lines):
    """Writes all of `lines` or nothing: readers never see half a file."""
    target = pathlib.Path(path)
    if not target.parent.is_dir():
        raise reader.TraceError(f"{path}: there is no directory {target.parent}")
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.writelines(lines)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)  # mkstemp gives 0600, unlike open()
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
