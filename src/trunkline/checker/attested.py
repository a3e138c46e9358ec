"""What no program can see of a migration, as the seed's checklist has it."""

from __future__ import annotations

from trunkline.agents.check_reports import AttestationItem

ATTESTED_ITEMS = {
    "deployed": "The updated agent is deployed",
    "logs": "Logs show proper JSON-RPC format",
    "documentation": "Agent documentation updated",
    "examples": "API examples updated to JSON-RPC 2.0",
    "team": "Team notified of migration",
}


def attestations(agent: str | None, note: str | None = None) -> list[AttestationItem]:
    """`note`: what was said when it was attested; None: nobody has."""
    how = f"trunkline agents migrate ready {agent or 'NAME'} --note '…'"
    return [
        AttestationItem(id=name, title=title, attested=note is not None, note=note, how=how)
        for name, title in ATTESTED_ITEMS.items()
    ]
