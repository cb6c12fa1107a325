"""The commands: what each commits and returns."""
