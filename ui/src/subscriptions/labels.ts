/** Subscriptions in words: what they report, and to whom. */

import type { ChangeType, Subscription } from "./queries.ts";

export const CHANGE_LABELS: Record<ChangeType, string> = {
  "run.completed": "A run completed",
  "run.failed": "A run failed",
  "run.cancelled": "A run was cancelled",
  "run.waiting": "A run waits for people",
  "step.failed": "A step failed",
  "question.asked": "A question was asked",
  "question.escalated": "A question was escalated",
  "agent.unhealthy": "An agent is unhealthy",
  "breaker.open": "A circuit breaker opened",
  "check.grade_changed": "The grade of an agent changed",
  dead_letter: "A message became a dead letter",
};

export const RECEIVERS = ["cloudevents", "slack", "teams", "mail"] as const;
export type Receiver = (typeof RECEIVERS)[number];

export const RECEIVER_LABELS: Record<Receiver, string> = {
  cloudevents: "CloudEvents endpoint",
  slack: "Slack",
  teams: "Microsoft Teams",
  mail: "Mail",
};

export function receiverOf(subscription: Subscription): Receiver {
  return subscription.mail.length > 0 ? "mail" : subscription.format;
}

export function addressOf({ url, mail }: Subscription): string {
  return url ?? mail.join(", ");
}
