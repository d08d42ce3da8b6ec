"""What came out of a run: the result format, the metrics, the plots and the report.

A run is a directory of files with a versioned schema, written once and never changed by a later run. Every number and
every plot comes from those files alone, so this room works on another machine, years later, without root.

May import: no other room.
Start reading at ``schema.py`` (what is stored), then ``writer.py`` and ``reader.py``, ``metrics/`` (what the numbers
mean, one file for each family), ``summary.py`` (the comparison), and ``report.py``.
"""
