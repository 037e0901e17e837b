"""The figures, one module a lesson: `FIGURES` maps a name to a function (trace, lang) -> Drawing.

A function draws what the trace says and asserts what its words claim of it: a figure that no longer fits
its kernel is not drawn at all.
"""
