"""The only package that uses Py4J and the internals of PySpark."""
