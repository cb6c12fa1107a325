"""An S3-compatible server for the tests: moto's, which runs in an environment of its own.

It serves one request at a time. moto looks whether an object exists and then puts it, and only so
are the two one step, as they are on S3. It prints its port, and serves until it is killed.

Of ``PUT /-/lose/3`` the third conditional put from then on is done, and its reply is lost.
``GET /-/figures`` returns how many conditional puts there were and how many were refused, how
many requests deleted one object or several, and how many listed objects other than those of a log.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server


class Watched:
    """Counts conditional puts in front of another application, and loses replies."""

    def __init__(self, application: Any) -> None:
        self._application = application
        counted = ("puts", "refused", "lost", "deletes", "bulk deletes", "listings")
        self._figures = dict.fromkeys(counted, 0)
        self._lose_in = 0

    def __call__(self, request: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        path = request["PATH_INFO"]
        if path.startswith("/-/lose/"):
            self._lose_in = int(path.rpartition("/")[2])
        if path.startswith("/-/"):
            start("200 OK", [("Content-Type", "application/json")])
            return [json.dumps(self._figures).encode()]
        query = request["QUERY_STRING"]
        if "list-type=" in query and "_delta_log" not in query:
            self._figures["listings"] += 1
        if request["REQUEST_METHOD"] == "DELETE":
            self._figures["deletes"] += 1
        if request["REQUEST_METHOD"] == "POST" and "delete" in query:
            self._figures["bulk deletes"] += 1
        is_put = request["REQUEST_METHOD"] == "PUT" and request.get("HTTP_IF_NONE_MATCH") == "*"
        return self._put(request, start) if is_put else self._application(request, start)

    def _put(self, request: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        answered: list[str] = []

        def note(status: str, *rest: Any) -> Any:
            answered.append(status)
            return start(status, *rest)

        body = list(self._application(request, note))
        self._figures["puts"] += 1
        self._figures["refused"] += answered[0].startswith("412")
        if self._lose_in:
            self._lose_in -= 1
            if self._lose_in == 0:
                self._figures["lost"] += 1
                raise ConnectionError("the reply is lost")
        return body


class Quiet(WSGIRequestHandler):  # type: ignore[misc]
    def log(self, *_: Any) -> None:
        """Log nothing."""


def main() -> None:
    application = Watched(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, application, threaded=False, request_handler=Quiet)
    print(server.port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
