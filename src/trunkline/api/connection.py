"""One connection to the API: what is not even read as a request is answered with a problem, like every other error."""

from __future__ import annotations

from trunkline.api.correlation import choose_correlation_id
from trunkline.serving.connection import Connection, Refusal


class ApiConnection(Connection):
    fix_of_bad_http = "Send HTTP/1.1 with a method that /openapi.json names."

    def refusal_text(self, refusal: Refusal) -> bytes:
        # Here, since the framework that it imports is loaded only after the work has begun.
        from trunkline.api.problems import Kind  # noqa: PLC0415
        from trunkline.api.problems import refusal as problem_text  # noqa: PLC0415

        kind = Kind(int(refusal.status), refusal.name, refusal.status.phrase)
        return problem_text(kind, refusal.detail, refusal.fix, choose_correlation_id(()))
