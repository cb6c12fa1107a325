"""The steps of ALTER TABLE DROP FEATURE."""
