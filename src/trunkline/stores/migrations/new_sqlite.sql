-- Generated from the revisions in versions/ by `make docs`. Don't edit.

CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL, 
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);

-- Running upgrade  -> 0001

CREATE TABLE agents (
    id TEXT NOT NULL, 
    name VARCHAR NOT NULL, 
    url VARCHAR NOT NULL, 
    description VARCHAR, 
    auth_type VARCHAR DEFAULT 'none' NOT NULL, 
    secret BLOB, 
    timeout_ms INTEGER DEFAULT 30000 NOT NULL, 
    retry TEXT, 
    max_concurrency INTEGER DEFAULT 100 NOT NULL, 
    pool VARCHAR, 
    dialect TEXT, 
    version INTEGER DEFAULT 1 NOT NULL, 
    created_at BIGINT NOT NULL, 
    updated_at BIGINT NOT NULL, 
    PRIMARY KEY (id)
);

CREATE UNIQUE INDEX ix_agents_name ON agents (name);

CREATE TABLE workflows (
    id TEXT NOT NULL, 
    name VARCHAR NOT NULL, 
    created_at BIGINT NOT NULL, 
    PRIMARY KEY (id), 
    UNIQUE (name)
);

CREATE TABLE workflow_versions (
    workflow_id TEXT NOT NULL, 
    version INTEGER NOT NULL, 
    canonical BLOB NOT NULL, 
    source BLOB NOT NULL, 
    created_at BIGINT NOT NULL, 
    PRIMARY KEY (workflow_id, version)
);

CREATE TABLE runs (
    id TEXT NOT NULL, 
    workflow_id TEXT NOT NULL, 
    workflow_name VARCHAR NOT NULL, 
    workflow_version INTEGER NOT NULL, 
    status VARCHAR NOT NULL, 
    version BIGINT DEFAULT 0 NOT NULL, 
    seq BIGINT DEFAULT 0 NOT NULL, 
    input BLOB NOT NULL, 
    output BLOB, 
    error BLOB, 
    correlation_id VARCHAR NOT NULL, 
    idempotency_key VARCHAR, 
    request_digest BLOB, 
    retry_of TEXT, 
    paused SMALLINT DEFAULT 0 NOT NULL, 
    contexts BLOB, 
    cancel_requested_at BIGINT, 
    created_at BIGINT NOT NULL, 
    started_at BIGINT, 
    finished_at BIGINT, 
    PRIMARY KEY (id), 
    UNIQUE (workflow_id, idempotency_key)
);

CREATE INDEX ix_runs_status ON runs (status, id);

CREATE INDEX ix_runs_workflow_name ON runs (workflow_name, id);

CREATE INDEX ix_runs_finished_at ON runs (finished_at);

CREATE TABLE steps (
    run_id TEXT NOT NULL, 
    name VARCHAR NOT NULL, 
    status VARCHAR NOT NULL, 
    attempts INTEGER DEFAULT 0 NOT NULL, 
    answered_failures INTEGER DEFAULT 0 NOT NULL, 
    replies INTEGER DEFAULT 0 NOT NULL, 
    protocol VARCHAR, 
    context_id VARCHAR, 
    remote_task_id VARCHAR, 
    reply BLOB, 
    input BLOB, 
    output BLOB, 
    error BLOB, 
    warnings BLOB, 
    waiting_for BLOB, 
    started_at BIGINT, 
    finished_at BIGINT, 
    PRIMARY KEY (run_id, name)
);

CREATE TABLE events (
    id INTEGER NOT NULL, 
    run_id TEXT NOT NULL, 
    seq BIGINT NOT NULL, 
    type VARCHAR NOT NULL, 
    at BIGINT NOT NULL, 
    data BLOB NOT NULL, 
    PRIMARY KEY (id), 
    UNIQUE (run_id, seq)
);

CREATE TABLE inbox (
    id INTEGER NOT NULL, 
    run_id TEXT NOT NULL, 
    "key" VARCHAR NOT NULL, 
    payload BLOB NOT NULL, 
    applied SMALLINT DEFAULT 0 NOT NULL, 
    PRIMARY KEY (id), 
    UNIQUE (run_id, "key")
);

CREATE INDEX ix_inbox_unapplied ON inbox (id) WHERE applied = 0;

CREATE TABLE timers (
    run_id TEXT NOT NULL, 
    "key" VARCHAR NOT NULL, 
    due BIGINT NOT NULL, 
    payload BLOB NOT NULL, 
    PRIMARY KEY (run_id, "key")
);

CREATE INDEX ix_timers_due ON timers (due);

CREATE TABLE tasks (
    id INTEGER NOT NULL, 
    task_id VARCHAR NOT NULL, 
    attempt INTEGER NOT NULL, 
    run_id TEXT NOT NULL, 
    agent VARCHAR NOT NULL, 
    status VARCHAR NOT NULL, 
    owner VARCHAR, 
    epoch BIGINT DEFAULT 0 NOT NULL, 
    stopping SMALLINT DEFAULT 0 NOT NULL, 
    at_most_once SMALLINT DEFAULT 0 NOT NULL, 
    deadline BIGINT, 
    poll_at BIGINT, 
    polls INTEGER DEFAULT 0 NOT NULL, 
    remote_task_id VARCHAR, 
    payload BLOB NOT NULL, 
    result BLOB, 
    PRIMARY KEY (id), 
    UNIQUE (task_id, attempt)
);

CREATE INDEX ix_tasks_queued ON tasks (agent, id) WHERE status = 'queued';

CREATE INDEX ix_tasks_remote ON tasks (poll_at) WHERE status = 'remote';

CREATE INDEX ix_tasks_busy ON tasks (agent) WHERE status IN ('claimed', 'remote');

CREATE TABLE exchanges (
    id INTEGER NOT NULL, 
    run_id TEXT NOT NULL, 
    step VARCHAR NOT NULL, 
    attempt INTEGER NOT NULL, 
    record BLOB NOT NULL, 
    PRIMARY KEY (id)
);

CREATE INDEX ix_exchanges_run_id ON exchanges (run_id, id);

INSERT INTO alembic_version (version_num) VALUES ('0001') RETURNING version_num;

-- Running upgrade 0001 -> 0002

ALTER TABLE agents ADD COLUMN protocol VARCHAR DEFAULT 'simple-a2a' NOT NULL;

ALTER TABLE agents ADD COLUMN protocol_config TEXT;

CREATE INDEX ix_agents_protocol ON agents (protocol);

UPDATE alembic_version SET version_num='0002' WHERE alembic_version.version_num = '0001';

-- Running upgrade 0002 -> 0003

ALTER TABLE tasks ADD COLUMN pool VARCHAR;

CREATE TABLE leases (
    owner VARCHAR NOT NULL, 
    until BIGINT NOT NULL, 
    PRIMARY KEY (owner)
);

CREATE TABLE outbox (
    id INTEGER NOT NULL, 
    messages BLOB NOT NULL, 
    PRIMARY KEY (id)
);

CREATE TABLE dispatches (
    task_id VARCHAR NOT NULL, 
    attempt INTEGER NOT NULL, 
    run_id TEXT NOT NULL, 
    payload BLOB NOT NULL, 
    pause BIGINT NOT NULL, 
    resend_at BIGINT NOT NULL, 
    PRIMARY KEY (task_id, attempt)
);

CREATE INDEX ix_dispatches_resend_at ON dispatches (resend_at);

CREATE TABLE dead_letters (
    id TEXT NOT NULL, 
    origin VARCHAR NOT NULL, 
    topic VARCHAR NOT NULL, 
    partition INTEGER NOT NULL, 
    "offset" BIGINT NOT NULL, 
    "key" BLOB, 
    value BLOB, 
    headers BLOB NOT NULL, 
    reason TEXT NOT NULL, 
    at BIGINT NOT NULL, 
    PRIMARY KEY (id), 
    UNIQUE (origin)
);

CREATE TABLE api_keys (
    id TEXT NOT NULL, 
    name VARCHAR NOT NULL, 
    role VARCHAR NOT NULL, 
    digest BLOB NOT NULL, 
    created_at BIGINT NOT NULL, 
    revoked_at BIGINT, 
    PRIMARY KEY (id), 
    UNIQUE (digest)
);

CREATE UNIQUE INDEX ix_api_keys_name_in_use ON api_keys (name) WHERE revoked_at IS NULL;

CREATE TABLE moves (
    at BIGINT NOT NULL
);

UPDATE alembic_version SET version_num='0003' WHERE alembic_version.version_num = '0002';

-- Running upgrade 0003 -> 0004

ALTER TABLE leases ADD COLUMN process VARCHAR;

UPDATE alembic_version SET version_num='0004' WHERE alembic_version.version_num = '0003';

-- Running upgrade 0004 -> 0005

ALTER TABLE agents ADD COLUMN options TEXT;

ALTER TABLE runs ADD COLUMN traceparent VARCHAR;

ALTER TABLE runs ADD COLUMN tracestate VARCHAR;

ALTER TABLE tasks ADD COLUMN context_id TEXT;

ALTER TABLE steps ADD COLUMN waiting_kind VARCHAR;

ALTER TABLE steps ADD COLUMN waiting_since BIGINT;

ALTER TABLE steps ADD COLUMN waiting_workflow VARCHAR;

UPDATE steps SET waiting_kind = CASE WHEN steps.status = 'OUTCOME_UNKNOWN' THEN 'outcome' WHEN substr(CAST(steps.waiting_for AS TEXT), 1, 15) = '{"kind":"input"' THEN 'input' WHEN substr(CAST(steps.waiting_for AS TEXT), 1, 14) = '{"kind":"auth"' THEN 'auth' END, waiting_workflow = runs.workflow_name, waiting_since = coalesce(steps.started_at, runs.created_at) FROM runs WHERE runs.id = steps.run_id AND steps.waiting_for IS NOT NULL AND steps.status IN ('WAITING', 'OUTCOME_UNKNOWN') AND CASE WHEN steps.status = 'OUTCOME_UNKNOWN' THEN 'outcome' WHEN substr(CAST(steps.waiting_for AS TEXT), 1, 15) = '{"kind":"input"' THEN 'input' WHEN substr(CAST(steps.waiting_for AS TEXT), 1, 14) = '{"kind":"auth"' THEN 'auth' END IS NOT NULL;

CREATE INDEX ix_steps_waiting ON steps (waiting_since, run_id, name) WHERE waiting_since IS NOT NULL;

CREATE INDEX ix_steps_waiting_kind ON steps (waiting_kind, waiting_since, run_id, name) WHERE waiting_since IS NOT NULL;

CREATE INDEX ix_steps_waiting_workflow ON steps (waiting_workflow, waiting_since, run_id, name) WHERE waiting_since IS NOT NULL;

CREATE INDEX ix_steps_waiting_workflow_kind ON steps (waiting_workflow, waiting_kind, waiting_since, run_id, name) WHERE waiting_since IS NOT NULL;

CREATE TABLE agent_states (
    agent TEXT NOT NULL, 
    breaker VARCHAR DEFAULT 'closed' NOT NULL, 
    failures INTEGER DEFAULT '0' NOT NULL, 
    recent VARCHAR DEFAULT '' NOT NULL, 
    probing INTEGER DEFAULT '0' NOT NULL, 
    opened_at BIGINT, 
    retry_at BIGINT, 
    reason TEXT, 
    tokens FLOAT, 
    refilled_at BIGINT, 
    PRIMARY KEY (agent)
);

UPDATE alembic_version SET version_num='0005' WHERE alembic_version.version_num = '0004';

-- Running upgrade 0005 -> 0006

CREATE TABLE secrets (
    name VARCHAR NOT NULL, 
    sealed BLOB NOT NULL, 
    version INTEGER DEFAULT '1' NOT NULL, 
    created_at BIGINT NOT NULL, 
    updated_at BIGINT NOT NULL, 
    PRIMARY KEY (name)
);

UPDATE alembic_version SET version_num='0006' WHERE alembic_version.version_num = '0005';

-- Running upgrade 0006 -> 0007

ALTER TABLE runs ADD COLUMN parent_id TEXT;

ALTER TABLE runs ADD COLUMN parent_step TEXT;

ALTER TABLE runs ADD COLUMN depth INTEGER DEFAULT '0' NOT NULL;

ALTER TABLE runs ADD COLUMN routes BIGINT DEFAULT '0' NOT NULL;

CREATE INDEX ix_runs_parent ON runs (parent_id, id) WHERE parent_id IS NOT NULL;

CREATE TABLE agent_events (
    id BIGINT NOT NULL, 
    agent_id TEXT NOT NULL, 
    agent TEXT NOT NULL, 
    kind VARCHAR NOT NULL, 
    at BIGINT NOT NULL, 
    who TEXT NOT NULL, 
    why TEXT NOT NULL, 
    data BLOB NOT NULL, 
    PRIMARY KEY (id)
);

CREATE INDEX ix_agent_events_agent ON agent_events (agent_id, id);

CREATE INDEX ix_agent_events_kind ON agent_events (kind, id);

CREATE TABLE agent_checks (
    id TEXT NOT NULL, 
    agent_id TEXT NOT NULL, 
    at BIGINT NOT NULL, 
    url TEXT NOT NULL, 
    protocol VARCHAR NOT NULL, 
    active INTEGER NOT NULL, 
    grade VARCHAR NOT NULL, 
    passed INTEGER NOT NULL, 
    report BLOB NOT NULL, 
    PRIMARY KEY (id)
);

CREATE INDEX ix_agent_checks_agent ON agent_checks (agent_id, id);

CREATE TABLE agent_sides (
    agent_id TEXT NOT NULL, 
    side VARCHAR NOT NULL, 
    calls BLOB NOT NULL, 
    PRIMARY KEY (agent_id, side)
);

CREATE TABLE comparisons (
    id TEXT NOT NULL, 
    agent_id TEXT NOT NULL, 
    since BIGINT NOT NULL, 
    run_id TEXT NOT NULL, 
    step TEXT NOT NULL, 
    at BIGINT NOT NULL, 
    verdict VARCHAR NOT NULL, 
    record BLOB NOT NULL, 
    PRIMARY KEY (id)
);

CREATE INDEX ix_comparisons_agent ON comparisons (agent_id, id);

UPDATE alembic_version SET version_num='0007' WHERE alembic_version.version_num = '0006';

-- Running upgrade 0007 -> 0008

CREATE INDEX ix_runs_version_top ON runs (workflow_name, workflow_version, status, id) WHERE parent_id IS NULL;

CREATE INDEX ix_runs_version_child ON runs (workflow_name, workflow_version, status, id) WHERE parent_id IS NOT NULL;

CREATE INDEX ix_runs_top ON runs (status, id) WHERE parent_id IS NULL;

CREATE INDEX ix_runs_correlation ON runs (correlation_id, id);

UPDATE alembic_version SET version_num='0008' WHERE alembic_version.version_num = '0007';

-- Running upgrade 0008 -> 0009

ALTER TABLE tasks ADD COLUMN called_at BIGINT;

ALTER TABLE tasks ADD COLUMN ended_at BIGINT;

ALTER TABLE tasks ADD COLUMN outcome VARCHAR;

ALTER TABLE tasks ADD COLUMN error_code VARCHAR;

CREATE INDEX ix_tasks_ended ON tasks (agent, ended_at, id) WHERE ended_at IS NOT NULL;

CREATE TABLE agent_minutes (
    agent TEXT NOT NULL, 
    minute BIGINT NOT NULL, 
    bridge VARCHAR NOT NULL, 
    calls INTEGER NOT NULL, 
    failures INTEGER NOT NULL, 
    total_ms BIGINT NOT NULL, 
    longest_ms BIGINT NOT NULL, 
    PRIMARY KEY (agent, minute, bridge)
);

CREATE INDEX ix_agent_minutes_minute ON agent_minutes (minute);

UPDATE alembic_version SET version_num='0009' WHERE alembic_version.version_num = '0008';

-- Running upgrade 0009 -> 0010

CREATE TABLE audit (
    id TEXT NOT NULL, 
    at BIGINT NOT NULL, 
    who TEXT, 
    kind VARCHAR NOT NULL, 
    action VARCHAR NOT NULL, 
    subject TEXT NOT NULL, 
    detail BLOB NOT NULL, 
    PRIMARY KEY (id)
);

CREATE INDEX ix_audit_at ON audit (at);

CREATE INDEX ix_audit_who ON audit (who, id);

CREATE INDEX ix_audit_kind ON audit (kind, id);

CREATE INDEX ix_audit_subject ON audit (subject, id);

CREATE TABLE processes (
    id TEXT NOT NULL, 
    name TEXT NOT NULL, 
    roles VARCHAR NOT NULL, 
    pool TEXT, 
    version VARCHAR NOT NULL, 
    started_at BIGINT NOT NULL, 
    seen_at BIGINT NOT NULL, 
    until BIGINT NOT NULL, 
    PRIMARY KEY (id)
);

UPDATE alembic_version SET version_num='0010' WHERE alembic_version.version_num = '0009';

-- Running upgrade 0010 -> 0011

ALTER TABLE runs ADD COLUMN started_by TEXT;

UPDATE alembic_version SET version_num='0011' WHERE alembic_version.version_num = '0010';

-- Running upgrade 0011 -> 0012

CREATE TABLE triggers (
    id TEXT NOT NULL, 
    name VARCHAR NOT NULL, 
    definition BLOB NOT NULL, 
    version INTEGER NOT NULL, 
    created_at BIGINT NOT NULL, 
    updated_at BIGINT NOT NULL, 
    scheduled_at BIGINT, 
    due BIGINT, 
    awaits_runs SMALLINT NOT NULL, 
    PRIMARY KEY (id), 
    UNIQUE (name)
);

CREATE INDEX ix_triggers_due ON triggers (due);

CREATE TABLE firings (
    id TEXT NOT NULL, 
    trigger_id TEXT NOT NULL, 
    at BIGINT NOT NULL, 
    outcome VARCHAR NOT NULL, 
    scheduled_at BIGINT, 
    run_id TEXT, 
    reason TEXT, 
    PRIMARY KEY (id)
);

CREATE INDEX ix_firings_trigger ON firings (trigger_id, id);

CREATE INDEX ix_firings_at ON firings (at);

CREATE INDEX ix_firings_queued ON firings (trigger_id, id) WHERE outcome = 'queued';

ALTER TABLE runs ADD COLUMN trigger_name TEXT;

CREATE INDEX ix_runs_unfinished_of_trigger ON runs (trigger_name, id) WHERE trigger_name IS NOT NULL AND finished_at IS NULL;

UPDATE alembic_version SET version_num='0012' WHERE alembic_version.version_num = '0011';

-- Running upgrade 0012 -> 0013

ALTER TABLE runs ADD COLUMN message BLOB;

CREATE TABLE published_tasks (
    run_id TEXT NOT NULL, 
    publication TEXT NOT NULL, 
    caller TEXT NOT NULL, 
    context_id TEXT NOT NULL, 
    state VARCHAR NOT NULL, 
    updated_at BIGINT NOT NULL, 
    PRIMARY KEY (run_id)
);

CREATE INDEX ix_published_tasks_caller ON published_tasks (publication, caller, updated_at, run_id);

CREATE INDEX ix_published_tasks_state ON published_tasks (publication, caller, state, updated_at, run_id);

CREATE INDEX ix_published_tasks_context ON published_tasks (context_id, publication, updated_at, run_id);

CREATE TABLE follow_ups (
    run_id TEXT NOT NULL, 
    "key" TEXT NOT NULL, 
    at BIGINT NOT NULL, 
    question BLOB NOT NULL, 
    answer BLOB NOT NULL, 
    PRIMARY KEY (run_id, "key")
);

UPDATE alembic_version SET version_num='0013' WHERE alembic_version.version_num = '0012';

-- Running upgrade 0013 -> 0014

ALTER TABLE api_keys ADD COLUMN expires_at BIGINT;

ALTER TABLE api_keys ADD COLUMN last_used_at BIGINT;

UPDATE alembic_version SET version_num='0014' WHERE alembic_version.version_num = '0013';

-- Running upgrade 0014 -> 0015

ALTER TABLE runs ADD COLUMN events_seen BIGINT DEFAULT 0 NOT NULL;

CREATE TABLE received_events (
    number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
    id TEXT NOT NULL, 
    source TEXT NOT NULL, 
    type TEXT NOT NULL, 
    "key" TEXT, 
    data BLOB NOT NULL, 
    at BIGINT NOT NULL, 
    run_id TEXT, 
    left_over BIGINT, 
    UNIQUE (source, id)
);

CREATE INDEX ix_received_events_type_key ON received_events (type, "key", number) WHERE run_id IS NULL;

CREATE INDEX ix_received_events_type ON received_events (type, number) WHERE run_id IS NULL;

CREATE INDEX ix_received_events_run ON received_events (run_id, type, number) WHERE run_id IS NOT NULL;

CREATE INDEX ix_received_events_left_over ON received_events (number) WHERE left_over IS NOT NULL;

CREATE INDEX ix_received_events_at ON received_events (at);

CREATE INDEX ix_received_events_id ON received_events (id);

CREATE TABLE event_waits (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
    run_id TEXT NOT NULL, 
    step TEXT NOT NULL, 
    type TEXT NOT NULL, 
    attempt INTEGER NOT NULL, 
    "key" TEXT, 
    is_signal SMALLINT NOT NULL, 
    UNIQUE (run_id, step, type)
);

CREATE INDEX ix_event_waits_type_key ON event_waits (type, "key", id) WHERE is_signal = 0;

UPDATE alembic_version SET version_num='0015' WHERE alembic_version.version_num = '0014';

-- Running upgrade 0015 -> 0016

ALTER TABLE outbox ADD COLUMN reserved_until BIGINT DEFAULT 0 NOT NULL;

UPDATE alembic_version SET version_num='0016' WHERE alembic_version.version_num = '0015';

-- Running upgrade 0016 -> 0017

CREATE TABLE callback_queues (
    queue TEXT NOT NULL, 
    kind TEXT NOT NULL, 
    failures INTEGER DEFAULT 0 NOT NULL, 
    next_attempt_at BIGINT NOT NULL, 
    claim TEXT, 
    PRIMARY KEY (queue)
);

CREATE INDEX ix_callback_queues_due ON callback_queues (next_attempt_at);

CREATE TABLE callbacks (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
    queue TEXT NOT NULL, 
    payload BLOB NOT NULL, 
    created_at BIGINT NOT NULL
);

CREATE INDEX ix_callbacks_queue ON callbacks (queue, id);

UPDATE alembic_version SET version_num='0017' WHERE alembic_version.version_num = '0016';

-- Running upgrade 0017 -> 0018

ALTER TABLE runs ADD COLUMN labels BLOB;

CREATE TABLE run_labels (
    run_id TEXT NOT NULL, 
    "key" TEXT NOT NULL, 
    value TEXT NOT NULL, 
    PRIMARY KEY (run_id, "key")
);

CREATE INDEX ix_run_labels ON run_labels ("key", value, run_id);

UPDATE alembic_version SET version_num='0018' WHERE alembic_version.version_num = '0017';

-- Running upgrade 0018 -> 0019

CREATE TABLE trigger_topics (
    topic TEXT NOT NULL, 
    trigger_id TEXT NOT NULL, 
    PRIMARY KEY (topic, trigger_id)
);

CREATE INDEX ix_trigger_topics_trigger ON trigger_topics (trigger_id);

CREATE TABLE trigger_occasions (
    number INTEGER NOT NULL, 
    trigger_id TEXT NOT NULL, 
    event_number BIGINT, 
    run_id TEXT, 
    at BIGINT NOT NULL, 
    PRIMARY KEY (number)
);

CREATE INDEX ix_trigger_occasions_trigger ON trigger_occasions (trigger_id);

CREATE INDEX ix_trigger_occasions_event ON trigger_occasions (event_number);

CREATE INDEX ix_trigger_occasions_run ON trigger_occasions (run_id);

UPDATE alembic_version SET version_num='0019' WHERE alembic_version.version_num = '0018';

-- Running upgrade 0019 -> 0020

ALTER TABLE steps ADD COLUMN call_details BLOB;

UPDATE alembic_version SET version_num='0020' WHERE alembic_version.version_num = '0019';

-- Running upgrade 0020 -> 0021

ALTER TABLE agents ADD COLUMN publish TEXT;

CREATE INDEX ix_agents_published ON agents (name) WHERE publish IS NOT NULL;

UPDATE alembic_version SET version_num='0021' WHERE alembic_version.version_num = '0020';

-- Running upgrade 0021 -> 0022

CREATE TABLE push_configs (
    run_id TEXT NOT NULL, 
    id TEXT NOT NULL, 
    sealed BLOB NOT NULL, 
    created_at BIGINT NOT NULL, 
    failures INTEGER DEFAULT 0 NOT NULL, 
    error TEXT, 
    disabled_at BIGINT, 
    PRIMARY KEY (run_id, id)
);

UPDATE alembic_version SET version_num='0022' WHERE alembic_version.version_num = '0021';

-- Running upgrade 0022 -> 0023

CREATE TABLE subscriptions (
    id TEXT NOT NULL, 
    name VARCHAR NOT NULL, 
    definition BLOB NOT NULL, 
    version INTEGER NOT NULL, 
    created_at BIGINT NOT NULL, 
    updated_at BIGINT NOT NULL, 
    failing_since BIGINT, 
    error TEXT, 
    disabled_at BIGINT, 
    PRIMARY KEY (id), 
    UNIQUE (name)
);

CREATE TABLE deliveries (
    id TEXT NOT NULL, 
    subscription_id TEXT NOT NULL, 
    event_id TEXT NOT NULL, 
    type TEXT NOT NULL, 
    run_id TEXT, 
    event BLOB NOT NULL, 
    created_at BIGINT NOT NULL, 
    status TEXT NOT NULL, 
    attempts INTEGER NOT NULL, 
    attempted_at BIGINT, 
    error TEXT, 
    PRIMARY KEY (id)
);

CREATE INDEX ix_deliveries_subscription ON deliveries (subscription_id, id);

CREATE INDEX ix_deliveries_created_at ON deliveries (created_at);

UPDATE alembic_version SET version_num='0023' WHERE alembic_version.version_num = '0022';

-- Running upgrade 0023 -> 0024

ALTER TABLE api_keys ADD COLUMN publications TEXT;

UPDATE alembic_version SET version_num='0024' WHERE alembic_version.version_num = '0023';

-- Running upgrade 0024 -> 0025

CREATE TABLE schemas (
    name VARCHAR NOT NULL, 
    schema BLOB NOT NULL, 
    version INTEGER DEFAULT '1' NOT NULL, 
    created_at BIGINT NOT NULL, 
    updated_at BIGINT NOT NULL, 
    PRIMARY KEY (name)
);

UPDATE alembic_version SET version_num='0025' WHERE alembic_version.version_num = '0024';

-- Running upgrade 0025 -> 0026

CREATE TABLE queued_starts (
    number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
    run_id TEXT NOT NULL, 
    gate TEXT NOT NULL, 
    state SMALLINT NOT NULL, 
    priority INTEGER NOT NULL, 
    not_before BIGINT NOT NULL, 
    due BIGINT, 
    reason TEXT, 
    policy BLOB NOT NULL, 
    UNIQUE (run_id)
);

CREATE INDEX ix_queued_starts_due ON queued_starts (due);

CREATE INDEX ix_queued_starts_gate ON queued_starts (gate, number);

CREATE TABLE start_rates (
    gate TEXT NOT NULL, 
    tokens FLOAT NOT NULL, 
    refilled_at BIGINT NOT NULL, 
    PRIMARY KEY (gate)
);

CREATE INDEX ix_start_rates_refilled_at ON start_rates (refilled_at);

UPDATE alembic_version SET version_num='0026' WHERE alembic_version.version_num = '0025';

-- Running upgrade 0026 -> 0027

ALTER TABLE runs ADD COLUMN block TEXT;

CREATE INDEX ix_runs_child ON runs (status, id) WHERE parent_id IS NOT NULL AND block IS NULL;

DROP INDEX ix_runs_version_child;

CREATE INDEX ix_runs_version_child ON runs (workflow_name, workflow_version, status, id) WHERE parent_id IS NOT NULL AND block IS NULL;

DROP INDEX ix_runs_workflow_name;

CREATE INDEX ix_runs_workflow_name ON runs (workflow_name, id) WHERE block IS NULL;

DROP INDEX ix_runs_correlation;

CREATE INDEX ix_runs_correlation ON runs (correlation_id, id) WHERE block IS NULL;

UPDATE alembic_version SET version_num='0027' WHERE alembic_version.version_num = '0026';

-- Running upgrade 0027 -> 0028

CREATE TABLE jobs (
    id TEXT NOT NULL, 
    status TEXT NOT NULL, 
    request BLOB NOT NULL, 
    progress BLOB NOT NULL, 
    created_by TEXT, 
    created_at BIGINT NOT NULL, 
    started_at BIGINT, 
    finished_at BIGINT, 
    due BIGINT, 
    epoch BIGINT NOT NULL, 
    PRIMARY KEY (id)
);

CREATE INDEX ix_jobs_due ON jobs (due, id);

CREATE INDEX ix_jobs_finished_at ON jobs (finished_at);

UPDATE alembic_version SET version_num='0028' WHERE alembic_version.version_num = '0027';

-- Running upgrade 0028 -> 0029

CREATE TABLE listed_tasks (
    run_id TEXT NOT NULL, 
    step TEXT NOT NULL, 
    person TEXT NOT NULL, 
    since BIGINT NOT NULL, 
    due BIGINT, 
    PRIMARY KEY (run_id, step, person)
);

CREATE INDEX ix_listed_tasks_person ON listed_tasks (person, since, run_id, step);

CREATE INDEX ix_listed_tasks_person_due ON listed_tasks (person, due, run_id, step) WHERE due IS NOT NULL;

CREATE INDEX ix_listed_tasks_due ON listed_tasks (due, run_id, step) WHERE due IS NOT NULL;

CREATE TABLE task_comments (
    run_id TEXT NOT NULL, 
    step TEXT NOT NULL, 
    attempts INTEGER NOT NULL, 
    replies INTEGER NOT NULL, 
    number INTEGER NOT NULL, 
    at BIGINT NOT NULL, 
    person TEXT, 
    text TEXT NOT NULL, 
    PRIMARY KEY (run_id, step, attempts, replies, number)
);

INSERT OR IGNORE INTO listed_tasks(run_id, step, person, since, due)
    SELECT steps.run_id, steps.name, coalesce(people.value, ''), steps.waiting_since,
        json_extract(CAST(steps.waiting_for AS TEXT), '$.human_task.due')
    FROM steps LEFT JOIN json_each(CAST(steps.waiting_for AS TEXT), '$.human_task.assignees') AS people
    WHERE steps.waiting_kind = 'person' AND steps.status = 'WAITING' AND (people.value IS NOT NULL
        OR json_extract(CAST(steps.waiting_for AS TEXT), '$.human_task.due') IS NOT NULL);

UPDATE alembic_version SET version_num='0029' WHERE alembic_version.version_num = '0028';

-- Running upgrade 0029 -> 0030

CREATE TABLE payloads (
    digest BLOB NOT NULL, 
    body BLOB NOT NULL, 
    PRIMARY KEY (digest)
);

CREATE TABLE payload_uses (
    run_id TEXT NOT NULL, 
    digest BLOB NOT NULL, 
    size BIGINT NOT NULL, 
    PRIMARY KEY (run_id, digest)
);

CREATE INDEX ix_payload_uses_digest ON payload_uses (digest);

ALTER TABLE processes ADD COLUMN reads_pieces SMALLINT;

UPDATE alembic_version SET version_num='0030' WHERE alembic_version.version_num = '0029';

-- Running upgrade 0030 -> 0031

CREATE TABLE kept_outputs (
    digest TEXT NOT NULL, 
    output BLOB NOT NULL, 
    size_bytes INTEGER NOT NULL, 
    run_id TEXT NOT NULL, 
    step TEXT NOT NULL, 
    workflow TEXT NOT NULL, 
    agent TEXT NOT NULL, 
    at BIGINT NOT NULL, 
    expires_at BIGINT NOT NULL, 
    PRIMARY KEY (digest)
);

CREATE INDEX ix_kept_outputs_expires_at ON kept_outputs (expires_at, size_bytes);

CREATE INDEX ix_kept_outputs_run_id ON kept_outputs (run_id);

CREATE TABLE output_claims (
    run_id TEXT NOT NULL, 
    step TEXT NOT NULL, 
    number INTEGER NOT NULL, 
    digest TEXT NOT NULL, 
    waits INTEGER NOT NULL, 
    since BIGINT NOT NULL, 
    PRIMARY KEY (run_id, step)
);

CREATE INDEX ix_output_claims_digest ON output_claims (digest, waits, since, run_id, step);

UPDATE alembic_version SET version_num='0031' WHERE alembic_version.version_num = '0030';

-- Running upgrade 0031 -> 0032

ALTER TABLE runs ADD COLUMN compensation BLOB;

UPDATE alembic_version SET version_num='0032' WHERE alembic_version.version_num = '0031';

