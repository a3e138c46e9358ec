/** A button that copies a text to the clipboard. */

import { Button, type ButtonProps } from "@mantine/core";
import { useClipboard } from "@mantine/hooks";
import { Check, Copy as CopyIcon, X } from "lucide-react";

export function CopyTextButton({
  text,
  label,
  testid,
  ...props
}: { text: string | (() => string); label: string; testid?: string } & ButtonProps) {
  const { copy, copied, error } = useClipboard({ timeout: 1_500 });
  const Icon = error !== null ? X : copied ? Check : CopyIcon;
  return (
    <Button
      size="compact-xs"
      variant="default"
      leftSection={<Icon size={13} aria-hidden />}
      onClick={() => copy(typeof text === "string" ? text : text())}
      title={error !== null ? "Browsers allow copying only over https or from localhost." : undefined}
      data-testid={testid}
      {...props}
    >
      {error !== null ? "Can't copy" : copied ? "Copied" : label}
    </Button>
  );
}
