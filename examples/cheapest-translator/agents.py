"""
Two translators with the agent kit, for the workflow next to this file. Both know the same few words.

    python agents.py economy 8080
    python agents.py premium 8081
"""

from __future__ import annotations

import sys

from trunkline.agentkit import Agent, Task

WORDS = {"owl": "Eule", "night": "Nacht", "the": "die", "loves": "liebt"}

economy = Agent("Economy translator", description="Translates English to German, word by word.")
premium = Agent("Premium translator", description="The same, and says so.")


def translation(task: Task) -> str:
    request = task.data if isinstance(task.data, dict) else {}
    words = str(request.get("text")).lower().split()
    return " ".join(WORDS.get(word, word) for word in words)


@economy
def translate(task: Task) -> str:
    return translation(task)


@premium
def translate_well(task: Task) -> str:
    return f"{translation(task)} (premium)"


if __name__ == "__main__":
    agent = {"economy": economy, "premium": premium}[sys.argv[1]]
    agent.run(port=int(sys.argv[2]))
