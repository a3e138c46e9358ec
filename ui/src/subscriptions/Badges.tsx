/** The status of a subscription, and of a delivery: an icon and a word in its colour. */

import { CircleCheck, CircleSlash, CircleX, Hourglass, Pause, type LucideIcon } from "lucide-react";

import classes from "../app/StatusBadge.module.css";
import type { Delivery, Subscription } from "./queries.ts";

interface Appearance {
  readonly icon: LucideIcon;
  readonly word: string;
  readonly color: string;
}

const SUBSCRIPTIONS: Record<Subscription["status"], Appearance> = {
  active: { icon: CircleCheck, word: "Active", color: "var(--status-completed)" },
  failing: { icon: CircleX, word: "Failing", color: "var(--status-failed)" },
  paused: { icon: Pause, word: "Paused", color: "var(--status-waiting)" },
  disabled: { icon: CircleSlash, word: "Disabled", color: "var(--status-failed)" },
};
const DELIVERIES: Record<Delivery["status"], Appearance> = {
  delivered: { icon: CircleCheck, word: "Delivered", color: "var(--status-completed)" },
  pending: { icon: Hourglass, word: "Pending", color: "var(--status-waiting)" },
  failed: { icon: CircleX, word: "Failed", color: "var(--status-failed)" },
};

export function SubscriptionBadge({ status }: { status: Subscription["status"] }) {
  return <Badge appearance={SUBSCRIPTIONS[status]} testId="subscription-status" />;
}

export function DeliveryBadge({ status }: { status: Delivery["status"] }) {
  return <Badge appearance={DELIVERIES[status]} testId="delivery-status" />;
}

function Badge({ appearance: { icon: Icon, word, color }, testId }: { appearance: Appearance; testId: string }) {
  return (
    <span className={classes["badge"]} style={{ color }} data-testid={testId}>
      <Icon size={15} aria-hidden />
      {word}
    </span>
  );
}
