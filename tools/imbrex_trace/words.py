# SPDX-License-Identifier: BSD-3-Clause
"""Numbers as people read them: three digits and a unit. Used by all that print or draw a trace."""
import datetime

NAME_MAX = 60  # characters of a task's name within a sentence


def duration(nanoseconds):
    """Three digits: "1.02 s", "806 ms", "5 us"."""
    for unit, name in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if nanoseconds >= 0.9995 * unit:
            return f"{three_digits(nanoseconds / unit)} {name}"
    return f"{nanoseconds:.0f} ns" if nanoseconds >= 0.5 else "0"


def three_digits(value):
    decimals = 0 if value >= 99.95 else 1 if value >= 9.995 else 2
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def percent(part, whole):
    """Without its sign; what is below ten has one decimal."""
    if not whole:
        return "-"
    value = 100 * part / whole
    if 0 < value < 0.05:
        return "<0.1"
    return f"{value:.1f}" if 0 < value < 9.95 else str(round(value))


def size(count):
    """Bytes, by powers of 1000."""
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= unit:
            return f"{three_digits(count / unit)} {name}"
    return f"{count} B"


def number_of(count, noun):
    """"1 task", "2 tasks"."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def date(nanoseconds):
    """Of ns since 1970, in the time zone of who reads it."""
    try:
        moment = datetime.datetime.fromtimestamp(nanoseconds // 10**9).astimezone()
    except (ValueError, OverflowError, OSError):
        return "at an unknown time"  # the trace is damaged
    return moment.strftime("%Y-%m-%d %H:%M %Z")


def short(name):
    return name if len(name) <= NAME_MAX else f"{name[:NAME_MAX - 3]}..."
