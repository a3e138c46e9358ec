"""What travels on the broker. Pure data: no I/O here."""

from trunkline.messages.caller_message import CallerMessage, decode_caller_message
from trunkline.messages.error_codes import ERROR_CODES, ErrorCodeInfo, complete_fix, fix_for
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
from trunkline.messages.records import (
    ANY_PARTITION,
    BrokerRecord,
    Dispatch,
    OutgoingMessage,
    TaskKey,
    TopicNames,
)
from trunkline.messages.trace import TraceContext

__all__ = [
    "ANY_PARTITION",
    "ERROR_CODES",
    "NO_OUTPUT",
    "AgentResult",
    "AgentTask",
    "BrokerRecord",
    "CallerMessage",
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
    "complete_fix",
    "decode_caller_message",
    "fix_for",
]
