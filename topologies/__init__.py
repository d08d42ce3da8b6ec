"""What a fabric is: its YAML, model, graph, names, addresses, paths, entropy values and capacity.

Pure: no root, no processes, no sockets. Imports no other room.

Start with ``graph.py`` (what everybody else reads), then ``load.py`` (YAML file -> model -> graph). ``document.py`` and
``quantities.py`` (line-tracked YAML, numbers with units) are shared with the experiments' files. A kind of fabric is a
model in ``model.py``, one file in ``builders/`` and one row in ``builders/registry.py``.
"""
