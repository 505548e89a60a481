"""TorchScript as a language: programs of Python lowered to a graph, and the two texts of a graph.

`emitter` reads a function's syntax tree and makes a `graph`; passes bring it to static single
assignment and clean it; `graph_text` and `python_text` print it. What cannot be lowered is
`NotLowered`. Nothing here computes: what is scripted runs as Python.
"""
