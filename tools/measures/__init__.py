"""The measures of simplicity that stand in ``ARCHITECTURE.md``: the walk of one value to the wire and of one
back, who reads a limit, lines of code and what stands in them, and the sizes of files.
"""
