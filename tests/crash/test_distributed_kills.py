"""
Two processes of each role; they, the broker and the database are killed again and again, some are paused for longer
than their lease. Nothing is lost, stuck or doubled, and every second call has its reason.

`make chaos` makes it large; a failure names the seed of its moments, which TRUNKLINE_CHAOS_SEED sets.
"""

from __future__ import annotations

import os
from pathlib import Path

import aiohttp
import pytest
from tests.crash.agents import CrashTestAgents
from tests.crash.chaos import SLOW_AGENTS, ChaosPlan, ChaosRun
from tests.crash.conftest import register_everything
from tests.crash.fleet import killable_fleet
from tests.crash.history_checker import second_calls, violations
from tests.crash.report import figures_of, write_figures

pytestmark = pytest.mark.anyio

PLAN = ChaosPlan(
    runs=int(os.environ.get("TRUNKLINE_CHAOS_RUNS", "180")),
    kills=int(os.environ.get("TRUNKLINE_CHAOS_KILLS", "18")),
    broker_kills=int(os.environ.get("TRUNKLINE_CHAOS_BROKER_KILLS", "2")),
    database_crashes=int(os.environ.get("TRUNKLINE_CHAOS_DATABASE_CRASHES", "2")),
    pauses=int(os.environ.get("TRUNKLINE_CHAOS_PAUSES", "2")),
    seed=int(os.environ.get("TRUNKLINE_CHAOS_SEED", "3")),
)


@pytest.mark.timeout(900 + 10 * PLAN.kills + PLAN.runs)
async def test_nothing_is_lost_when_everything_is_killed_again_and_again(
    tmp_path: Path, agents: CrashTestAgents, patient_session: aiohttp.ClientSession
) -> None:
    agents.forget()
    async with killable_fleet(tmp_path) as fleet:
        agents.life_of = fleet.lives.of
        chaos = ChaosRun(PLAN, fleet, agents, patient_session)
        await register_everything(chaos.client, agents, SLOW_AGENTS)
        history = await chaos.run()
        unsettled = fleet.query(
            "SELECT count(*) FROM dispatches JOIN runs ON runs.id = dispatches.run_id"
            " WHERE runs.status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED')"
        )
    harm = {
        **{f"kills of {role}": number for role, number in sorted(chaos.kills.items())},
        "kills of the broker": fleet.broker_kills,
        "crashes of the database": fleet.database_crashes,
        **{f"pauses of {role}": number for role, number in sorted(chaos.pauses.items())},
    }
    write_figures(figures_of(history, harm))

    assert violations(history) == [], f"seed {PLAN.seed}"
    assert history.accepted == PLAN.runs
    assert unsettled == "0"
    again = second_calls(history)
    assert again["caller died"], "no call was under way at any kill: nothing was tested"
