"""Rules of bulk operations: each run is acted on once, and no job holds up others or removes what goes on."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.mutation import Drop, ReplaceText
from tests.sabotage.rule import Rule

_STORE = "tests/contract/stores/test_jobs.py"
_DELETION = "tests/contract/stores/test_run_deletion.py"
_WORKER = "tests/contract/test_bulk_jobs.py"
_SQLITE = "trunkline.stores.sqlite.tables.automation.jobs"
_POSTGRES = "trunkline.stores.postgres.tables.automation.jobs"

JOBS: Sequence[Rule] = (
    Rule(
        name="job-page-under-its-claim",
        breaks="A process that was paused acts on runs of a bulk operation that another process has gone on with.",
        symbol=f"{_POSTGRES}:_WRITE",
        change=ReplaceText(" AND epoch = $2", " AND $2::bigint IS NOT NULL"),
        caught_by=(f"{_STORE}::test_a_page_of_a_claim_that_has_ended_does_not_count[postgres]",),
    ),
    Rule(
        name="job-page-counts-once",
        breaks="A page whose commit was not confirmed is written again.",
        symbol=f"{_SQLITE}:_WRITE",
        change=ReplaceText(", epoch = epoch + 1", ""),
        caught_by=(f"{_STORE}::test_a_page_counts_once[sqlite]",),
    ),
    Rule(
        name="cancelled-job-acts-no-more",
        breaks="A bulk operation that was cancelled still acts on a page of runs.",
        symbol="trunkline.executor.bulk_jobs:BulkJobs._write",
        change=Drop("if statement", 1, of=4),
        caught_by=(f"{_WORKER}::test_a_job_that_is_cancelled_in_a_page_acts_on_no_run_of_it[sqlite]",),
    ),
    Rule(
        name="job-of-existing-runs",
        breaks="A bulk retry also retries the runs that it has started.",
        symbol="trunkline.executor.bulk_jobs:BulkJobs._matching",
        change=Drop("operand", 2, of=2),
        caught_by=(f"{_WORKER}::test_a_run_that_is_created_after_the_job_is_left_alone[sqlite]",),
    ),
    Rule(
        name="jobs-take-turns",
        breaks="A large bulk operation keeps all others waiting until it ends.",
        symbol=f"{_SQLITE}:_CLAIM",
        change=ReplaceText("ORDER BY due, id", "ORDER BY id"),
        caught_by=(f"{_STORE}::test_jobs_take_turns_page_by_page[sqlite]",),
    ),
    Rule(
        name="number-of-jobs",
        breaks="One client starts bulk operations without end.",
        symbol=f"{_SQLITE}:_PUT",
        change=ReplaceText("LIMIT ?6)) < ?6", "LIMIT ?6)) < ?6 + 1"),
        caught_by=(f"{_STORE}::test_there_is_a_limit_of_unfinished_jobs[sqlite]",),
    ),
    Rule(
        name="deleted-run-has-no-call-in-flight",
        breaks="A run is deleted while an agent works for it, and a message on a topic then calls the agent again.",
        symbol="trunkline.stores.postgres.tables.runs:_DELETABLE",
        change=ReplaceText("AND status IN ('queued', 'claimed', 'remote')", "AND status IN ('queued')"),
        caught_by=(f"{_DELETION}::test_a_run_with_a_call_in_flight_stays[postgres]",),
    ),
    Rule(
        name="children-are-deleted-first",
        breaks="Child runs of a deleted run are left, and nothing leads to them.",
        symbol="trunkline.stores.sqlite.tables.runs:_DELETABLE",
        change=ReplaceText(
            "AND NOT EXISTS (SELECT 1 FROM runs AS child WHERE child.parent_id = runs.id)", ""
        ),
        caught_by=(f"{_DELETION}::test_a_run_that_has_not_ended_stays[sqlite]",),
    ),
)
