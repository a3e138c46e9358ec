"""
The errors that a caller gets when its request is rejected: JSON-RPC's codes, and those of A2A.

    -32700  not JSON                          -32001  no such task
    -32600  not a request                     -32002  the task cannot be canceled
    -32601  no such method                    -32003  no push notifications
    -32602  params that cannot be read        -32004  not with this task, or not now
    -32603  an error of the agent's own       -32007  no extended card
                                              -32009  a version of A2A that is not spoken
"""

from __future__ import annotations

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
TASK_NOT_FOUND = -32001
NOT_CANCELABLE = -32002
NO_PUSHES = -32003
UNSUPPORTED = -32004
NO_EXTENDED_CARD = -32007
VERSION_NOT_SUPPORTED = -32009


class RequestError(Exception):
    """A request is not taken; the message is for the caller."""

    # Of the HTTP response. JSON-RPC has its errors in answers that are well.
    status = 200

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class RequestTooLarge(RequestError):
    status = 413

    def __init__(self, limit: int) -> None:
        super().__init__(INVALID_REQUEST, f"The request is larger than the limit of {limit:,} bytes")


class TooManyTasks(RequestError):
    """Every place is taken by a task that is not over."""

    status = 503

    def __init__(self, limit: int) -> None:
        super().__init__(INTERNAL_ERROR, f"The agent has {limit:,} tasks in progress, which is its limit")


class TaskNotFound(RequestError):
    def __init__(self, task_id: str) -> None:
        super().__init__(TASK_NOT_FOUND, f"Task not found: {task_id}")


def invalid_params(message: str) -> RequestError:
    return RequestError(INVALID_PARAMS, f"Invalid params: {message}")
