"""The command line: one thin file for each command; the work is done in the other rooms.

May import every other room; no other room imports this one. Start reading in ``main.py``, which holds the table of
commands and turns errors into exit codes. ``console.py`` has what commands share.
"""
