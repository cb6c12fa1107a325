"""The committer in its own process, for a JVM that was not started by Python.

The JVM runs this module like ``python3 -m``, with the address and secret of its gateway in the
environment, waits for `READY` on the standard output, and closes the standard input to stop it.
"""

from __future__ import annotations

import sys

from pyspark.java_gateway import launch_gateway

from deltaic.spark.gateway import register_with

READY = "DELTAIC-COMMITTER READY"


def main() -> int:
    """Serve until the standard input is closed, which also happens when the JVM exits."""
    gateway = launch_gateway()  # type: ignore[no-untyped-call]
    register_with(gateway)
    print(READY, flush=True)
    while sys.stdin.buffer.read(4096):
        pass
    gateway.shutdown_callback_server()
    return 0


if __name__ == "__main__":
    sys.exit(main())
