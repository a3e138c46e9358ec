"""What travels on the broker. Pure data: no I/O here."""

from trunkline.messages.dispatch import Dispatch, TaskKey
from trunkline.messages.errors import ERROR_CODES, ErrorCodeInfo, fix_for
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
from trunkline.messages.outgoing import BrokerRecord, OutgoingMessage
from trunkline.messages.topics import TopicNames
from trunkline.messages.trace import TraceContext

__all__ = [
    "ERROR_CODES",
    "NO_OUTPUT",
    "AgentResult",
    "AgentTask",
    "BrokerRecord",
    "CancelTask",
    "Dispatch",
    "ErrorCodeInfo",
    "OutgoingMessage",
    "Progress",
    "Question",
    "ReplyMessage",
    "ResultStatus",
    "StepError",
    "TaskKey",
    "TopicNames",
    "TraceContext",
    "fix_for",
]
