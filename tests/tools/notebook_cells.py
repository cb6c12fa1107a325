"""Runs cells in a Jupyter kernel; a program for the environment of the tools.

It reads JSON with ``cells``, the Python code of each, and ``interrupt_at``, a file: the kernel is
interrupted when a cell has made it. It prints the messages of each cell: their types and contents.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

from jupyter_client.manager import start_new_kernel

CELL_TIMEOUT_S = 120


def main() -> None:
    given = json.load(sys.stdin)
    manager, client = start_new_kernel(kernel_name="python3")

    def interrupt() -> None:
        while not Path(given["interrupt_at"]).exists():
            time.sleep(0.1)
        manager.interrupt_kernel()

    messages: list[list[Any]] = []

    def keep(message: dict[str, Any]) -> None:
        messages[-1].append([message["msg_type"], message["content"]])

    try:
        threading.Thread(target=interrupt, daemon=True).start()
        for cell in given["cells"]:
            messages.append([])
            client.execute_interactive(cell, timeout=CELL_TIMEOUT_S, output_hook=keep)
    finally:
        client.stop_channels()
        manager.shutdown_kernel()
    print(json.dumps(messages))


if __name__ == "__main__":
    main()
