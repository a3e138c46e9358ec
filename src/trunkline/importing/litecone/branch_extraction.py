"""
Branches that become workflows of their own.

A branch's steps stand among the others where that says the same. It does not where the branch as a whole has a time,
where it ends in one of several steps (a join counts steps), or where a loop in it has a `when` about items, which
cannot say that the step before it has failed. Such a branch becomes one step that begins a workflow.
"""

from __future__ import annotations

from msgspec.structs import replace

from trunkline.importing.litecone.source_model import (
    ExtractedBranchStep,
    ForkBranch,
    LiteconeAgentStep,
    LiteconeForkJoinStep,
    LiteconeLoopStep,
    LiteconeStep,
    LiteconeWorkflow,
)


def extract_branches(plan: LiteconeWorkflow) -> LiteconeWorkflow:
    """The workflow with each such branch as a step."""
    steps: dict[str, LiteconeStep] = dict(plan.steps)
    for fork in plan.steps.values():
        if isinstance(fork, LiteconeForkJoinStep):
            branches = {name: _extract(name, branch, fork, steps) for name, branch in fork.branches.items()}
            steps[fork.id] = replace(fork, branches=branches)
    return replace(plan, steps=steps)


def unawaited_steps(plan: LiteconeWorkflow) -> dict[str, tuple[str, str]]:
    """The steps of forks that go on before all branches are over, each with its fork and branch."""
    forks = (
        fork
        for fork in plan.steps.values()
        if isinstance(fork, LiteconeForkJoinStep) and fork.policy != "all"
    )
    return {
        step: (fork.id, name)
        for fork in forks
        for name, branch in fork.branches.items()
        for step in branch.steps
    }


def _extract(
    name: str, branch: ForkBranch, fork: LiteconeForkJoinStep, steps: dict[str, LiteconeStep]
) -> ForkBranch:
    singles = all(isinstance(steps.get(step), LiteconeAgentStep | LiteconeLoopStep) for step in branch.steps)
    chooses = any(
        isinstance(step := steps.get(name), LiteconeLoopStep) and step.most for name in branch.steps[1:]
    )
    stands_alone = singles and (len(branch.steps) == 1 or (branch.seconds is None and not chooses))
    if stands_alone or any(step not in steps for step in branch.steps):
        return branch
    if branch.seconds is None and fork.policy == "all":
        return branch
    part = f"{fork.id}.{name}"
    while part in steps:
        part += "_"
    steps[part] = ExtractedBranchStep(part, None, branch.steps, branch.seconds)
    return ForkBranch((part,), None)
