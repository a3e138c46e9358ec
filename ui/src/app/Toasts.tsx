/** The messages of `toast`: shown in the corner and announced by screen readers. */

import { CloseButton, Text } from "@mantine/core";
import { CircleCheck, TriangleAlert } from "lucide-react";

import classes from "./Toasts.module.css";
import { dismiss, useToasts, type Toast } from "./toasts.ts";

const LOOKS = {
  done: { icon: CircleCheck, color: "var(--status-completed)" },
  failed: { icon: TriangleAlert, color: "var(--status-failed)" },
} as const;

/** Always rendered: screen readers announce only changes of a region that already exists. */
export function Toasts() {
  const toasts = useToasts();
  return (
    <div className={classes["corner"]} role="status" aria-live="polite" data-testid="toasts">
      {toasts.map((each) => (
        <Note key={each.id} toast={each} />
      ))}
    </div>
  );
}

function Note({ toast }: { toast: Toast }) {
  const { icon: Icon, color } = LOOKS[toast.kind];
  return (
    <div className={classes["note"]} data-testid="toast" data-kind={toast.kind}>
      <Icon size={18} aria-hidden color={color} className={classes["icon"]} />
      <Text size="sm" className={classes["text"]}>
        {toast.text}
      </Text>
      <CloseButton size="sm" aria-label="Dismiss" onClick={() => dismiss(toast.id)} />
    </div>
  );
}
