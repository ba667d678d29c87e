"""Random but repeatable runs of both frontends on one account: crashes, lost answers, refusals, late
requests, waits of days and changes made in the control panel. ``python -m tests.simulation --seeds 10000``
runs many.
"""
