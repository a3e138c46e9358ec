/** What the numbers and names of the system mean. */

import type { AuditEntry, AuditKind, Consumers, Count } from "./queries.ts";

export function counted({ count, exact }: Count): string {
  return `${count.toLocaleString("en")}${exact ? "" : "+"}`;
}

interface Queue {
  readonly name: string;
  readonly meaning: string;
  /** Whether anything in it is a reason to look. */
  readonly worrying?: true;
}

export const QUEUES: Record<string, Queue> = {
  inbox: { name: "Inputs", meaning: "Answers, wishes and timers that runs have not taken in yet." },
  timers: { name: "Timers", meaning: "Retries, time limits and pauses that are set." },
  timers_due: { name: "Timers due", meaning: "Those whose time has come; an executor takes them at once." },
  tasks_queued: { name: "Tasks queued", meaning: "Calls that wait for a bridge, or for a free slot of their agent." },
  tasks_claimed: { name: "Calls under way", meaning: "Bridges are talking to agents." },
  tasks_remote: { name: "Agents at work", meaning: "Agents have taken these tasks and are asked again later." },
  tasks_without_secret: {
    name: "Tasks without a secret",
    meaning: "Nobody can make these calls: the agent's secret is not here. Give it again.",
    worrying: true,
  },
  outbox: { name: "Outbox", meaning: "Messages that are not on the broker's topics yet." },
  dispatches: { name: "Awaited results", meaning: "Tasks that were sent to bridges and have no result yet." },
  dead_letters: { name: "Dead letters", meaning: "Messages that could not be read or applied.", worrying: true },
};

/** Who takes the records of a topic. */
export function takersOf({ role, pool }: Consumers): string {
  if (role === "bridge") return pool === null ? "Bridges" : `Bridges of the pool ${pool}`;
  return role === "executor" ? "Executors" : "APIs";
}

export const KINDS: Record<AuditKind, string> = {
  run: "Runs",
  workflow: "Workflows",
  agent: "Agents",
  migration: "Migration",
  key: "Keys",
  secret: "Secrets",
  dead_letter: "Dead letters",
};

const DEEDS: Record<string, string> = {
  "run.cancel": "cancelled the run",
  "run.pause": "paused the run",
  "run.resume": "resumed the run",
  "run.retry": "retried the run",
  "run.reply": "answered a question of the run",
  "run.resolve": "said what became of a call of the run",
  "workflow.save": "saved the workflow",
  "agent.create": "registered the agent",
  "agent.change": "changed the agent",
  "agent.delete": "removed the agent",
  "agent.reset": "reset the agent",
  "agent.try": "sent a test message to the agent",
  "agent.check": "sent the messages of a check to the agent",
  "migration.attest": "attested that the agent is ready to move",
  "migration.shadow": "shadowed the agent",
  "migration.canary": "put runs on the agent's new side",
  "migration.cutover": "cut the agent over",
  "migration.rollback": "rolled the agent back",
  "migration.finish": "finished the move of the agent",
  "key.create": "made the key",
  "key.revoke": "revoked the key",
  "secret.set": "set the secret",
  "secret.remove": "removed the secret",
  "dead_letter.replay": "sent the dead letter on",
  "dead_letter.discard": "threw the dead letter away",
};

export function deedOf({ kind, action }: AuditEntry): string {
  return DEEDS[`${kind}.${action}`] ?? `${action}: ${kind.replace("_", " ")}`;
}

/** What else there is to say, as `name: value`. */
export function detailsOf({ detail }: AuditEntry): string[] {
  return Object.entries(detail)
    .filter(([, value]) => value !== null && value !== false && value !== "")
    .map(([name, value]) => {
      const shown = Array.isArray(value) ? value.join(", ") : typeof value === "string" ? value : JSON.stringify(value);
      return value === true ? name.replaceAll("_", " ") : `${name.replaceAll("_", " ")}: ${shown}`;
    });
}
