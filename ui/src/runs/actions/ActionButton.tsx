/** A button that explains why it is disabled: on hover, on focus and to screen readers. */

import { Button, type ButtonProps, Tooltip } from "@mantine/core";
import type { LucideIcon } from "lucide-react";

interface ActionButtonProps {
  readonly icon: LucideIcon;
  readonly children: string;
  /** Why the button is disabled, or null if it is enabled. */
  readonly refused: string | null;
  readonly onPress?: () => void;
  readonly testId: string;
  readonly loading?: boolean;
  readonly filled?: boolean;
  readonly size?: ButtonProps["size"];
}

export function ActionButton({
  icon: Icon,
  children,
  refused,
  onPress,
  testId,
  loading = false,
  filled = false,
  size = "xs",
}: ActionButtonProps) {
  return (
    <Tooltip
      label={refused}
      disabled={refused === null}
      events={{ hover: true, focus: true, touch: true }}
      multiline
      maw={320}
      position="bottom"
    >
      <Button
        size={size}
        variant={filled ? "filled" : "default"}
        leftSection={<Icon size={14} aria-hidden />}
        loading={loading}
        // Not `disabled`: a disabled button cannot be focused, so the reason would not be announced.
        {...(refused === null
          ? {}
          : { "data-disabled": true, "aria-disabled": true, "aria-label": `${children}. ${refused}` })}
        onClick={() => {
          if (refused === null) onPress?.();
        }}
        data-testid={testId}
      >
        {children}
      </Button>
    </Tooltip>
  );
}
