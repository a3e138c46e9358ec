/** A toggle button that filters by status. */

import { UnstyledButton } from "@mantine/core";
import type { ReactNode } from "react";

import type { RunStatus, StepStatus } from "../runs/model.ts";
import { appearanceOf } from "./StatusBadge.tsx";
import classes from "./StatusToggle.module.css";

export function StatusToggle({
  status,
  isPressed,
  onPress,
  testId,
  children,
}: {
  readonly status: RunStatus | StepStatus;
  readonly isPressed: boolean;
  readonly onPress: () => void;
  readonly testId: string;
  readonly children: ReactNode;
}) {
  const { icon: Icon, color } = appearanceOf(status);
  return (
    <UnstyledButton className={classes["toggle"]} aria-pressed={isPressed} onClick={onPress} data-testid={testId}>
      <Icon size={14} aria-hidden color={color} />
      {children}
    </UnstyledButton>
  );
}
