"""Deltaic in a session of Spark Connect: the server has the JVM, the jar and the committer."""
