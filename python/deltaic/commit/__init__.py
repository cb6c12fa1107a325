"""How a commit is made: pure, with I/O through ports."""
