"""Checks whether a log follows the protocol."""
