"""The committer in a process of its own, for a JVM that no Python started.

The JVM runs this module as ``python3 -m`` would, with the address and secret of its gateway in
the environment, waits for `READY` on the standard output, and closes the standard input to end it.
"""

from __future__ import annotations

import sys

from pyspark.java_gateway import launch_gateway

from deltaic.spark.gateway import register_with

READY = "DELTAIC-SIDECAR READY"


def main() -> int:
    """Serve until the standard input ends, which it also does when the JVM dies."""
    gateway = launch_gateway()  # type: ignore[no-untyped-call]
    register_with(gateway)
    print(READY, flush=True)
    while sys.stdin.buffer.read(4096):
        pass
    gateway.shutdown_callback_server()
    return 0


if __name__ == "__main__":
    sys.exit(main())
