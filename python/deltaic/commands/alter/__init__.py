"""Commands that change the definition of a table."""
