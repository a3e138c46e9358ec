"""Large payloads are stored once, and stay while a run uses them."""

from __future__ import annotations

from tests.sabotage.mutation import Change, Drop, ReplaceText
from tests.sabotage.rule import Rule

_CONTRACT = "tests/contract/stores/test_payloads.py"
_POSTGRES = "tests/contract/postgres/test_pieces.py"

PAYLOADS = (
    Rule(
        name="used-piece-is-kept",
        breaks="Deleting one run takes the large payloads of other runs along.",
        symbol="trunkline.stores.sqlite.database.payloads:_DELETE_UNUSED",
        change=ReplaceText("NOT EXISTS", "EXISTS"),
        caught_by=(f"{_CONTRACT}::test_the_last_run_that_uses_a_piece_takes_it_along[sqlite-True]",),
    ),
    Rule(
        name="used-piece-is-kept-postgres",
        breaks="Deleting one run takes the large payloads of other runs along.",
        symbol="trunkline.stores.postgres.database.payloads:_DELETE_UNUSED",
        change=ReplaceText("NOT EXISTS", "EXISTS"),
        caught_by=(f"{_CONTRACT}::test_the_last_run_that_uses_a_piece_takes_it_along[postgres-True]",),
    ),
    Rule(
        name="deleted-runs-free-their-pieces",
        breaks="Large payloads of deleted runs stay in the database forever.",
        symbol="trunkline.stores.sqlite.tables.runs:SqliteRunWrites._delete",
        change=Drop("call statement", 2, of=2),
        caught_by=(f"{_CONTRACT}::test_the_last_run_that_uses_a_piece_takes_it_along[sqlite-False]",),
    ),
    Rule(
        name="two-deletions-lock-their-pieces",
        breaks="Two runs that are deleted at the same time leave their payloads behind forever.",
        symbol="trunkline.stores.postgres.database.payloads:_LOCK",
        change=ReplaceText("FOR UPDATE", ""),
        caught_by=(f"{_POSTGRES}::test_a_deletion_waits_for_another_one_that_uses_the_same_piece",),
    ),
    Rule(
        name="overwritten-payloads-are-trimmed",
        breaks="A run that overwrites a large output again and again fills the disk.",
        symbol="trunkline.stores.sqlite.database.payloads:SqlitePayloads.trim",
        change=Change("condition", 1, of=2, becomes="True"),
        caught_by=(f"{_CONTRACT}::test_outputs_that_are_written_over_do_not_pile_up[sqlite]",),
    ),
    Rule(
        name="unread-output-is-asked-for",
        breaks="An expression reads the list of pieces instead of an output.",
        symbol="trunkline.machine.state:StepState.read_output",
        change=Change("condition", becomes="False"),
        caught_by=(
            "tests/unit/machine/test_unread_outputs.py::test_an_expression_asks_for_an_output_that_was_not_read",
        ),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="old-processes-see-no-pieces",
        breaks="During an upgrade, processes of the version before fail runs with large payloads.",
        symbol="trunkline.stores.postgres.database.payloads:PieceGate.is_open",
        change=Change("return value", becomes="True"),
        caught_by=(f"{_POSTGRES}::test_nothing_is_split_while_an_old_process_is_alive",),
    ),
)
