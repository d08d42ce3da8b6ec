"""The plots, one file each. Every figure is drawn from result files, with matplotlib's objects and no global state.

Start at ``catalogue.py``, which lists them; ``style.py`` holds colours, sizes and how images are saved.
"""
