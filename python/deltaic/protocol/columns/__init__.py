"""Columns of tables: their schema, mapping to data files, types and requirements."""
