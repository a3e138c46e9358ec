"""Where the time of the distributed mode goes: samples of each role, and PostgreSQL's statements."""

from __future__ import annotations

from pathlib import Path

from bench.figures.distributed import AT_A_TIME, warm_up
from bench.harness.environment import BenchEnvironment
from bench.harness.fleet import Fleet, FleetResult, fleet
from bench.harness.job import STEPS
from bench.harness.load import LoadOrder

_STATEMENTS = "pg_stat_statements"
_MOST_STATEMENTS = 40
_TOP = f"""
    SELECT rpad(round((total_exec_time + total_plan_time)::numeric, 0) || ' ms', 10)
        || rpad(calls || ' calls', 16)
        || rpad(round((1000 * (total_exec_time + total_plan_time) / calls)::numeric, 0) || ' us each', 14)
        || rpad(round((1000 * total_plan_time / calls)::numeric, 0) || ' us to plan', 16)
        || rpad(round(rows::numeric / calls, 1) || ' rows', 14)
        || left(regexp_replace(query, '\\s+', ' ', 'g'), 110)
    FROM {_STATEMENTS} WHERE dbid = (SELECT oid FROM pg_database WHERE datname = 'trunkline')
    ORDER BY total_exec_time + total_plan_time DESC LIMIT {_MOST_STATEMENTS}
"""  # noqa: S608 - constants of this module


async def profile_distributed(environment: BenchEnvironment, runs: int) -> None:
    with fleet() as ours:
        counts = _count_statements(ours)
        ours.add_one_of_each(sampled=True)
        await ours.set_up(environment.agent_url)
        await warm_up(environment, ours)
        if counts:
            ours.postgres.execute(f"SELECT {_STATEMENTS}_reset()")
        before = ours.wal_syncs()
        done = await ours.measure(LoadOrder(AT_A_TIME, environment.runs(runs)))
        _show_totals(done, ours.wal_syncs() - before)
        if counts:
            print("\nPostgreSQL, by statement, all backends")
            print(ours.postgres.execute(_TOP))
        for role, log in ours.stop_roles():
            print(f"\n==== {role}")
            print(samples_in(log))


def _count_statements(ours: Fleet) -> bool:
    """Whether this PostgreSQL can; it is part of most packages, not of all."""
    found = f"SELECT count(*) FROM pg_available_extensions WHERE name = '{_STATEMENTS}'"  # noqa: S608 - as above
    if ours.postgres.execute(found) == "0":
        return False
    ours.postgres.execute(f"ALTER SYSTEM SET shared_preload_libraries = '{_STATEMENTS}'")
    ours.postgres.stop()
    ours.postgres.start()
    ours.postgres.execute(f"CREATE EXTENSION {_STATEMENTS}")
    # What a connection takes over at its start.
    ours.postgres.execute(f"ALTER SYSTEM SET {_STATEMENTS}.track_planning = on")
    ours.postgres.execute("SELECT pg_reload_conf()")
    return True


def _show_totals(done: FleetResult, syncs: int) -> None:
    runs = done.took.runs
    print(
        f"{done.took.per_second:.0f} workflows/s while sampled, {syncs / runs:.2f} waits for the disk a run"
    )
    print("CPU s per 1,000 steps")
    for kind, seconds in done.cpu.items():
        print(f"{seconds / (runs * STEPS) * 1_000:8.2f}  {kind}")


def samples_in(log: Path) -> str:
    """What the sampler has written, without the log's own lines."""
    return "\n".join(line for line in log.read_text().splitlines() if not line.startswith("{"))
