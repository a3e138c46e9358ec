"""The log of one task: every line says whose it is."""

from __future__ import annotations

import structlog

from trunkline.messages import AgentTask

log = structlog.stdlib.get_logger()


def task_log(task: AgentTask) -> structlog.stdlib.BoundLogger:
    return log.bind(
        run_id=task.run_id,
        task_id=task.task_id,
        step=task.step,
        attempt=task.attempt,
        agent_name=task.agent,
        correlation_id=task.correlation_id,
    )
