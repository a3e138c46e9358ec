"""What travels on the broker. Pure data: no I/O here."""

from trunkline.messages.dispatch import Dispatch, TaskKey
from trunkline.messages.errors import ERROR_CODES, ErrorCode, fix_for
from trunkline.messages.model import (
    NO_OUTPUT,
    AgentResult,
    AgentTask,
    CancelTask,
    Progress,
    Question,
    ReplyMessage,
    ResultStatus,
    StepError,
)
from trunkline.messages.outgoing import Outgoing, Record
from trunkline.messages.topics import TopicNames
from trunkline.messages.trace import TraceContext

__all__ = [
    "ERROR_CODES",
    "NO_OUTPUT",
    "AgentResult",
    "AgentTask",
    "CancelTask",
    "Dispatch",
    "ErrorCode",
    "Outgoing",
    "Progress",
    "Question",
    "Record",
    "ReplyMessage",
    "ResultStatus",
    "StepError",
    "TaskKey",
    "TopicNames",
    "TraceContext",
    "fix_for",
]
