"""Deltaic beside delta-spark and plain Parquet, measured in one run.

``python -m bench`` starts one worker process per engine, gives them the same work in turns, checks
that all of them answer the same, and prints medians and ratios. Start reading in ``runner``; what
is measured is in ``scenarios``, one module each.
"""
