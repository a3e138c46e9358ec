/** Puts a text on the clipboard, and says that it has. */

import { Button, type ButtonProps } from "@mantine/core";
import { useClipboard } from "@mantine/hooks";
import { Check, Copy as CopyIcon, X } from "lucide-react";

export function Copy({
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
      title={error !== null ? "The browser allows copying only on https and on this machine's own address." : undefined}
      data-testid={testid}
      {...props}
    >
      {error !== null ? "Not allowed" : copied ? "Copied" : label}
    </Button>
  );
}
