"""What travels on the broker. Pure data: no I/O here."""

from trunkline.messages.errors import ERROR_CODES, ErrorCode, fix_for
from trunkline.messages.model import (
    NO_OUTPUT,
    AgentResult,
    AgentTask,
    CancelTask,
    Question,
    ReplyMessage,
    ResultStatus,
    StepError,
)

__all__ = [
    "ERROR_CODES",
    "NO_OUTPUT",
    "AgentResult",
    "AgentTask",
    "CancelTask",
    "ErrorCode",
    "Question",
    "ReplyMessage",
    "ResultStatus",
    "StepError",
    "fix_for",
]
