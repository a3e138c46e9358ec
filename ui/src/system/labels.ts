/** The labels and descriptions of queues, consumers and audit entries. */

import type { AuditEntry, AuditKind, Consumers, Count } from "./queries.ts";

export function counted({ count, exact }: Count): string {
  return `${count.toLocaleString("en")}${exact ? "" : "+"}`;
}

interface Queue {
  readonly name: string;
  readonly meaning: string;
  /** Whether any entry needs attention. */
  readonly worrying?: true;
}

export const QUEUES: Record<string, Queue> = {
  inbox: {
    name: "Queued inputs",
    meaning: "Results, commands and timers that are stored and not yet applied to their runs.",
  },
  timers: { name: "Timers", meaning: "Scheduled retries, timeouts and deadlines." },
  timers_due: { name: "Timers due", meaning: "Timers whose time has come and that an executor has not processed yet." },
  tasks_queued: { name: "Tasks queued", meaning: "Tasks that wait for a bridge or for the limits of their agent." },
  tasks_claimed: { name: "Calls in progress", meaning: "Tasks that a bridge is sending to an agent." },
  tasks_remote: {
    name: "Remote tasks",
    meaning: "Tasks that agents have accepted and still work on. Bridges poll them.",
  },
  tasks_without_secret: {
    name: "Tasks without credentials",
    meaning: "Tasks that cannot be sent because the agent's credentials are missing. Enter the credentials again.",
    worrying: true,
  },
  outbox: { name: "Outbox", meaning: "Messages that are stored and not yet published to Kafka." },
  dispatches: { name: "Dispatches", meaning: "Published tasks without a result." },
  dead_letters: { name: "Dead letters", meaning: "Messages that could not be read or applied.", worrying: true },
};

/** The processes that consume a topic. */
export function consumersLabel({ role, pool }: Consumers): string {
  if (role === "bridge") return pool === null ? "Bridges" : `Bridges in pool ${pool}`;
  return role === "executor" ? "Executors" : "API servers";
}

export const KINDS: Record<AuditKind, string> = {
  run: "Runs",
  workflow: "Workflows",
  agent: "Agents",
  migration: "Migration",
  key: "Keys",
  schema: "Schemas",
  secret: "Secrets",
  dead_letter: "Dead letters",
  trigger: "Triggers",
  subscription: "Subscriptions",
  job: "Jobs",
  cache: "Cache of outputs",
};

const ACTION_LABELS: Record<string, string> = {
  "run.cancel": "Cancelled run",
  "cache.clear": "Cleared the cache of outputs:",
  "run.pause": "Paused run",
  "run.delete": "Deleted run",
  "job.start": "Started bulk operation",
  "job.cancel": "Cancelled bulk operation",
  "run.resume": "Resumed run",
  "run.retry": "Retried run",
  "run.reply": "Replied to a question of run",
  "run.resolve": "Resolved an unknown outcome of run",
  "workflow.save": "Saved workflow",
  "subscription.create": "Created subscription",
  "subscription.update": "Changed subscription",
  "subscription.delete": "Deleted subscription",
  "subscription.pause": "Paused subscription",
  "subscription.resume": "Resumed subscription",
  "subscription.test": "Tested subscription",
  "subscription.redeliver": "Repeated a delivery of subscription",
  "trigger.create": "Created trigger",
  "trigger.update": "Changed trigger",
  "trigger.delete": "Deleted trigger",
  "trigger.pause": "Paused trigger",
  "trigger.resume": "Resumed trigger",
  "trigger.fire": "Fired trigger",
  "trigger.backfill": "Backfilled trigger",
  "agent.create": "Registered agent",
  "agent.change": "Edited agent",
  "agent.delete": "Deleted agent",
  "agent.reset": "Reset the limits of agent",
  "agent.try": "Sent a test call to agent",
  "agent.check": "Ran a check with test messages on agent",
  "migration.attest": "Attested the readiness of agent",
  "migration.shadow": "Started shadowing agent",
  "migration.canary": "Started a canary for agent",
  "migration.cutover": "Cut over agent",
  "migration.rollback": "Rolled back agent",
  "migration.finish": "Finished the migration of agent",
  "key.create": "Created key",
  "key.revoke": "Revoked key",
  "secret.set": "Set secret",
  "schema.save": "Saved schema",
  "schema.delete": "Deleted schema",
  "secret.remove": "Deleted secret",
  "dead_letter.replay": "Replayed dead letter",
  "dead_letter.discard": "Deleted dead letter",
};

export function actionLabel({ kind, action }: AuditEntry): string {
  return ACTION_LABELS[`${kind}.${action}`] ?? `${action}: ${kind.replace("_", " ")}`;
}

/** The details of an entry as `name: value`. */
export function detailsOf({ detail }: AuditEntry): string[] {
  return Object.entries(detail)
    .filter(([, value]) => value !== null && value !== false && value !== "")
    .map(([name, value]) => {
      const shown = Array.isArray(value) ? value.join(", ") : typeof value === "string" ? value : JSON.stringify(value);
      return value === true ? name.replaceAll("_", " ") : `${name.replaceAll("_", " ")}: ${shown}`;
    });
}
