"""Definitions of tables: of a new one, and of what a command changes."""
