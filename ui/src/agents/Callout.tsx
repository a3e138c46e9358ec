/** A short message with an icon and an accent colour; the text keeps the normal colour for contrast. */

import { Text } from "@mantine/core";
import { CircleCheck, CircleHelp, CircleX, Info, type LucideIcon } from "lucide-react";
import type { ReactNode } from "react";

import classes from "./agents.module.css";

type Weight = "good" | "bad" | "caution" | "neutral";

const LOOKS: Record<Weight, { readonly icon: LucideIcon; readonly color: string }> = {
  good: { icon: CircleCheck, color: "var(--status-completed)" },
  bad: { icon: CircleX, color: "var(--status-failed)" },
  caution: { icon: Info, color: "var(--status-waiting)" },
  neutral: { icon: CircleHelp, color: "var(--status-pending)" },
};

export function Callout({
  weight,
  title,
  icon,
  testId,
  value,
  children,
}: {
  weight: Weight;
  title: string;
  icon?: LucideIcon;
  testId?: string;
  value?: string;
  children?: ReactNode;
}) {
  const { icon: usual, color } = LOOKS[weight];
  const Icon = icon ?? usual;
  return (
    <div
      className={classes["note"]}
      style={{ borderLeftColor: color }}
      role="status"
      data-testid={testId}
      data-value={value}
    >
      <Icon size={18} aria-hidden style={{ color, flexShrink: 0, marginTop: 2 }} />
      <div className={classes["wrap"]}>
        <Text size="sm" fw={600} style={{ color }}>
          {title}
        </Text>
        {children}
      </div>
    </div>
  );
}
