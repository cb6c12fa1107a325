"""The only place that knows Py4J and the inside of PySpark."""
