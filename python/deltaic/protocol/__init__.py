"""The Delta protocol as data and rules: pure, without Spark and without I/O."""
