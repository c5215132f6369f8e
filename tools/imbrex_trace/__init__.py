# SPDX-License-Identifier: BSD-3-Clause
"""Reads traces (docs/design/trace-format.md) and shows them. Used by the command tools/imbrex.

reader: files to records.  history: records to what every worker did when.  graph: which message
and which task follows which.  steps: the run as a program that imbrex-simulate runs.
timeline, summary, report: what every worker did, as a picture, as tables, as a page.
"""
