"""Rules of calls: when they begin, under which name, and what a stop or a lost lease means for them."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.rule import Rule

_WORKER = "tests/unit/bridge/test_commit_parts.py"
_HEARTBEAT = "tests/unit/bridge/test_heartbeat.py"
_COMMITS = "tests/unit/services/test_commit_loop.py"
_MACHINE_RETRIES = "tests/unit/machine/test_retries.py"
_AT_MOST_ONCE = "tests/unit/machine/test_at_most_once.py"
_RESTARTS = "tests/scenarios/test_restarts.py"
_RUNS = "tests/scenarios/test_runs.py"
_RETRIES = "tests/scenarios/test_retries.py"

CALLS: Sequence[Rule] = (
    Rule(
        name="told-after-the-commit",
        breaks="Agents are called and clients answered for a turn that then fails.",
        file="services/commit_loop.py",
        old="                    await part.work(tx)\n",
        new="                    await part.work(tx)\n                    part.committed()\n",
        caught_by=(
            f"{_COMMITS}::test_a_turn_that_fails_is_never_told_as_committed_and_leaves_nothing",
            f"{_COMMITS}::test_parts_hear_of_a_commit_when_it_is_durable_and_all_have_worked",
        ),
    ),
    Rule(
        name="call-after-the-claim",
        breaks="An agent is called though its claim was rolled back, and called again by whoever claims it then.",
        file="bridge/commit_parts.py",
        old="    def rolled_back(self) -> None:\n        self._forget()\n",
        new="    def rolled_back(self) -> None:\n        self.committed()\n",
        caught_by=(f"{_WORKER}::test_an_agent_is_called_only_when_the_claim_is_durable",),
    ),
    Rule(
        name="claim-committed-unheard",
        breaks="What was claimed by a commit that only seemed to fail is held by a bridge that never calls it.",
        file="bridge/commit_parts.py",
        old="        self._forget()\n        self._unsure = True\n",
        new="        self._forget()\n        self._unsure = False\n",
        caught_by=(f"{_WORKER}::test_a_claim_that_was_committed_though_we_were_told_it_was_not_is_called",),
    ),
    Rule(
        name="stop-that-another-bridge-heard",
        breaks="An agent that goes on when the stop comes is never told.",
        file="bridge/commit_parts.py",
        old="            self._calls.ensure_ended(claim)\n",
        new="            del claim\n",
        caught_by=(f"{_WORKER}::test_an_agent_that_goes_on_when_the_stop_comes_is_told",),
    ),
    Rule(
        name="answer-of-the-next-turn",
        breaks="An answer that comes while a turn waits for the store is lost.",
        file="bridge/commit_parts.py",
        old="        del self._calls.updates[: self._carried]\n",
        new="        self._calls.updates.clear()\n",
        caught_by=(f"{_WORKER}::test_an_answer_that_comes_during_a_turn_waits_for_the_next",),
    ),
    Rule(
        name="zombie-publishes-nothing",
        breaks="The executor hears the answer of a bridge that has lost its task.",
        file="bridge/commit_parts.py",
        old=" and item.claim.key not in lost]",
        new="]",
        caught_by=(f"{_WORKER}::test_an_answer_that_is_not_ours_any_more_is_not_published",),
    ),
    Rule(
        name="remote-task-asked",
        breaks="An agent that works on a task gets it again instead of being asked how it stands.",
        file="bridge/calls/agent_call.py",
        old="if claim.remote_task_id is not None:\n            outcome = await client.poll(",
        new="if claim.remote_task_id is not None and claim.polls < 0:\n            outcome = await client.poll(",
        caught_by=(f"{_RUNS}::test_an_agent_that_works_first_is_asked_until_it_is_done",),
    ),
    Rule(
        name="task-id-derived",
        breaks="A call that is made again has another name: its agent cannot see that, and no late answer fits.",
        file="ids.py",
        old='return TaskId(f"{run}/{step}/{answered_failures}{suffix}")',
        new="return TaskId(f'{run}/{step}/{answered_failures}{suffix}/{__import__(\"os\").urandom(4).hex()}')",
        caught_by=(
            f"{_MACHINE_RETRIES}::test_a_call_without_an_answer_is_made_again_under_the_same_task_id",
        ),
    ),
    Rule(
        name="message-id-derived",
        breaks="A call that is made again has another messageId: its agent does the work twice.",
        file="protocols/a2a_v03/request.py",
        old='"messageId": f"msg-{task.task_id}"',
        new='"messageId": f"msg-{task.task_id}-{task.attempt}"',
        caught_by=(f"{_RETRIES}::test_a_call_without_an_answer_is_repeated_under_the_same_id",),
    ),
    Rule(
        name="lost-answer-is-a-doubt",
        breaks="A call that must not be made twice, and whose answer was lost, passes for one that has failed.",
        file="machine/steps/agent.py",
        old='== "at_most_once" and was_sent(error) and not is_answered(error):',
        new='== "at_most_once" and was_sent(error) and error.code == "":',
        caught_by=(
            f"{_AT_MOST_ONCE}::test_a_sent_call_without_an_answer_stops_in_doubt_and_is_never_made_again",
        ),
    ),
    Rule(
        name="stop-claims-nothing",
        breaks="A bridge that is to stop begins calls that it has to abandon.",
        file="bridge/commit_parts.py",
        old="is_open = not self._stopping.is_set()",
        new="is_open = self._stopping is not None",
        caught_by=(f"{_WORKER}::test_a_bridge_that_is_to_stop_claims_nothing_more",),
    ),
    Rule(
        name="stop-waits-for-calls",
        breaks="Every deployment calls agents twice.",
        file="wiring/system.py",
        old="                await bridge.drain()\n",
        new="                pass\n",
        caught_by=(f"{_RESTARTS}::test_a_call_in_flight_may_end_during_the_stop_and_is_not_made_again",),
    ),
    Rule(
        name="reclaim-needs-a-lease-of-ones-own",
        breaks="A bridge that was cut off takes the calls of those that live, as soon as it is back.",
        file="bridge/commit_parts.py",
        old="        if self._heartbeat.has_stable_lease(tx.now):\n",
        new="        if self._heartbeat:\n",
        caught_by=(f"{_WORKER}::test_what_the_dead_have_left_is_taken_only_by_who_holds_a_lease_itself",),
    ),
    Rule(
        name="grace-after-a-lease-was-lost",
        breaks="When the database comes back the first bridge takes the calls of all others, and makes them again.",
        file="bridge/heartbeat.py",
        old="self._stable_from = after(now, RECLAIM_GRACE)",
        new="self._stable_from = now",
        caught_by=(
            f"{_HEARTBEAT}::test_who_was_away_for_longer_than_its_lease_lets_the_others_come_back_first",
        ),
    ),
)
