"""Generated litecone workflows: everything is imported or reported, and the result is valid."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trunkline.importing.litecone import import_files
from trunkline.jsontypes import Json, JsonObject

IDS = ["a", "b-1", "c", "d", "e.f", "in"]
SOME_ID = st.sampled_from([*IDS, "missing"])
NEXT = st.one_of(st.none(), SOME_ID)
REFERENCES = st.one_of(
    st.sampled_from(
        ["workflow.input.x", "workflow.input", "loop.item", "loop.item.x", "loop.total", "x", "", "a..b"]
    ),
    st.tuples(
        SOME_ID, st.sampled_from(["", ".x", ".text", ".iterations", ".branch_output.y", ".c", ".one[0]"])
    ).map(lambda parts: f"{parts[0]}.output{parts[1]}"),
).map(lambda path: f"${{{path}}}")
REFERENCE_LISTS: st.SearchStrategy[Json] = st.lists(REFERENCES, max_size=2).map(lambda found: [*found])
VALUES: st.SearchStrategy[Json] = st.one_of(
    REFERENCES, st.text(max_size=4), st.integers(), st.none(), REFERENCE_LISTS
)
CONDITIONS = st.one_of(
    REFERENCES.map(lambda reference: f"{reference} > 1"),
    REFERENCES,
    REFERENCES.map(lambda reference: f"not {reference} and 'a' in {reference}"),
    st.text(max_size=6),
)


def step(**fields: st.SearchStrategy[Json]) -> st.SearchStrategy[JsonObject]:
    return st.fixed_dictionaries({**fields, "next_step": NEXT})


def mapping(fields: dict[str, st.SearchStrategy[Json]]) -> st.SearchStrategy[Json]:
    return st.fixed_dictionaries(fields).map(lambda found: {**found})


LISTS: st.SearchStrategy[Json] = st.lists(SOME_ID, min_size=1, max_size=3).map(lambda found: [*found])
BRANCH = mapping({"steps": LISTS, "timeout_seconds": st.one_of(st.none(), st.just(5))})
STEPS = st.one_of(
    step(
        agent_name=st.just("A"),
        input_mapping=st.dictionaries(st.text(max_size=3), VALUES, max_size=3).map(lambda found: {**found}),
    ),
    step(type=st.just("parallel"), parallel_steps=LISTS, max_parallelism=st.sampled_from([None, 1, 0])),
    step(
        type=st.just("conditional"),
        condition=mapping({"expression": CONDITIONS}),
        if_true_step=NEXT,
        if_false_step=NEXT,
    ),
    step(
        type=st.just("loop"),
        loop_config=mapping(
            {
                "collection": REFERENCES,
                "loop_body": LISTS,
                "max_iterations": st.sampled_from([None, 2]),
                "on_error": st.sampled_from(["stop", "continue", "collect", "other"]),
            }
        ),
    ),
    step(
        type=st.just("fork_join"),
        fork_join_config=mapping(
            {
                "branches": mapping({"one": BRANCH, "two/3": BRANCH}),
                "join_policy": st.sampled_from(["all", "any", "majority", "n_of_m"]),
                "n_required": st.sampled_from([None, 1, 2, 3]),
            }
        ),
    ),
)
WORKFLOWS = st.fixed_dictionaries(dict.fromkeys(IDS, STEPS))


@given(WORKFLOWS)
def test_any_workflow_is_imported_or_reported_and_the_result_is_valid(
    steps: dict[str, JsonObject],
) -> None:
    source: JsonObject = {"name": "w", "start_step": "a", "steps": {**steps}}
    imported = import_files([("w.json", source)])
    assert imported.workflows or imported.lost
    # What is not valid is so for a reason that was told before.
    losses = [remark for remark in imported.remarks if remark.kind == "lost"]
    assert not losses or not all("is not valid" in remark.message for remark in losses)


ANY_JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                ["steps", "start_step", "name", "url", "items", "workflow_data", "auth_config", "x"]
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=12,
)


@given(ANY_JSON)
def test_any_file_is_read_without_harm(content: Json) -> None:
    imported = import_files([("any.json", content)])
    assert imported.workflows or imported.agents or imported.lost or content in ([], {"items": []})
