# SPDX-License-Identifier: BSD-3-Clause
"""Reads traces (docs/design/trace-format.md) and shows them. Used by the command tools/imbrex.

reader: files to records.  history: records to what every worker did when.
chrome, timeline, summary: that, as JSON for Perfetto, as a picture, as a table.
"""
