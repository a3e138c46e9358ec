"""The names of log events: one list, so that a dashboard can rely on them."""

# requests, and their translation
HTTP_CALL = "http_call"
PROTOCOL_REQUEST_TRANSLATION = "protocol_request_translation"
PROTOCOL_RESPONSE_TRANSLATION = "protocol_response_translation"
PROTOCOL_TRANSLATION_ERROR = "protocol_translation_error"
OUTPUT_EXTRACTED = "output_extracted"

# calls
CALL_FAILED = "call_failed"
CALL_CRASHED = "call_crashed"
AGENT_WARNING = "agent_warning"
AGENT_CALL_DELAYED = "agent_call_delayed"
ANSWER_TOO_LATE = "answer_too_late"
CANCEL_NOT_CONFIRMED = "cancel_not_confirmed"
PUSH_NOTIFICATION_RECEIVED = "push_notification_received"
DIALECT_DECIDED = "dialect_decided"
CARD_NOT_USED = "card_not_used"
TOKEN_FETCHED = "token_fetched"  # noqa: S105 - no password

# programs that are agents
PROGRAM_STARTED = "program_started"
PROGRAM_ENDED = "program_ended"
PROGRAM_OUTPUT = "program_output"
PROGRAM_LINE_IGNORED = "program_line_ignored"
PROGRAM_LINES_DROPPED = "program_lines_dropped"

# the breakers
BREAKER_OPENED = "breaker_opened"
BREAKER_PROBED = "breaker_probed"
BREAKER_CLOSED = "breaker_closed"
AGENT_RESET = "agent_reset"
AGENT_TRIED = "agent_tried"

# agents that move, and that change
MIGRATION_CHANGED = "migration_changed"
MIGRATION_REFUSED = "migration_refused"
MIGRATION_ROLLED_BACK = "migration_rolled_back"
MIGRATION_NOT_ROLLED_BACK = "migration_not_rolled_back"
SHADOW_CRASHED = "shadow_crashed"
COMPARISONS_LOST = "comparisons_lost"
CARD_CHANGED = "card_changed"
GRADE_CHANGED = "grade_changed"
DIALECT_CHANGED = "dialect_changed"
RECORDED_CALL_REPEATED = "recorded_call_repeated"

# runs
RUN_STARTED = "run_started"
RUN_FINISHED = "run_finished"
RUN_POISONED = "run_poisoned"
JOB_ENDED = "job_ended"
JOB_FAILED = "job_failed"

# callbacks
CALLBACKS_FAILED = "callbacks_failed"

# named secrets
SECRET_SET = "secret_set"  # noqa: S105 - no password
SECRET_REMOVED = "secret_removed"  # noqa: S105 - as above
SECRET_UNAVAILABLE = "secret_unavailable"  # noqa: S105 - as above

# the REST door
HTTP_REQUEST = "http_request"
REQUEST_FAILED = "request_failed"
ACCESS_REFUSED = "access_refused"
CERTIFICATE_RELOADED = "certificate_reloaded"
CERTIFICATE_NOT_RELOADED = "certificate_not_reloaded"
CONNECTIONS_REFUSED = "connections_refused"
CONNECTION_NOT_ESTABLISHED = "connection_not_established"

# the broker
BROKER_UNAVAILABLE = "broker_unavailable"
BROKER_AVAILABLE = "broker_available"
MESSAGES_UNDELIVERED = "messages_undelivered"
OFFSETS_NOT_COMMITTED = "offsets_not_committed"
DEAD_LETTER = "dead_letter"

# triggers
TRIGGER_SAVED = "trigger_saved"
TRIGGER_DELETED = "trigger_deleted"
TRIGGER_FAILED = "trigger_failed"
WEBHOOK_REFUSED = "webhook_refused"

# subscriptions
SUBSCRIPTION_SAVED = "subscription_saved"
SUBSCRIPTION_DELETED = "subscription_deleted"

# dead letters
DEAD_LETTER_REPLAYED = "dead_letter_replayed"
DEAD_LETTER_DISCARDED = "dead_letter_discarded"

# traces
TRACES = "traces"
TRACES_NOT_SENT = "traces_not_sent"

# the process
READY = "ready"
GRPC_READY = "grpc_ready"
ADDRESSES_ALLOWED = "addresses_allowed"
STOPPING = "stopping"
CALLS_ABANDONED = "calls_abandoned"
TASKS_RECLAIMED = "tasks_reclaimed"
TASKS_RESENT = "tasks_resent"
LEASE_LOST = "lease_lost"
TOPIC_LACKS_PARTITIONS = "topic_lacks_partitions"
WAITING_FOR_DEPENDENCY = "waiting_for_dependency"
RUNS_DELETED = "runs_deleted"
OUT_OF_RESOURCES = "out_of_resources"
OPEN_FILE_LIMIT_LOW = "open_file_limit_low"
STORE_UNAVAILABLE = "store_unavailable"
TURN_FAILED = "turn_failed"

# zones
ZONE_CALL = "zone_call"
ZONE_HANDLER_FAILED = "zone_handler_failed"
ZONE_FAILED = "zone_failed"
ZONE_NOT_DURABLE = "zone_not_durable"
ZONE_METHODS_UNKNOWN = "zone_methods_unknown"
ZONE_CALL_REFUSED = "zone_call_refused"
ZONE_CALL_TIMED_OUT = "zone_call_timed_out"
ZONE_CALL_INTERRUPTED = "zone_call_interrupted"
ZONE_CALL_SENT_AGAIN = "zone_call_sent_again"
ZONE_CALL_RUN_AGAIN = "zone_call_run_again"
ZONE_CALL_NOT_REVIVED = "zone_call_not_revived"
ZONE_NOT_WRITTEN = "zone_not_written"
ZONE_OUTPUT_CLOSED = "zone_output_closed"
