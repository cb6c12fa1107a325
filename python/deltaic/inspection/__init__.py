"""What the log of a table says about its state, read without Spark and without a JVM."""
