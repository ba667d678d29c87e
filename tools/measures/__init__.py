"""The measures of simplicity that stand in ``ARCHITECTURE.md``: the walk of one value to the wire, and the
sizes of files.
"""
