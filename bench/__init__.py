"""Deltaic beside delta-spark and plain Parquet, measured in one run.

``python -m bench`` starts one worker process per engine, gives them the same work in turns, checks
that all return the same results, and prints medians and ratios. Start reading in ``runner``; the
scenarios are in ``scenarios``, one module each.
"""
