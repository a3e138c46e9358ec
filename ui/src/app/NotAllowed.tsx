/** Says above a form, before anybody fills it in, that the key of this page may not send it. */

import { Alert } from "@mantine/core";
import { Lock } from "lucide-react";

import type { May } from "./access.ts";

export function NotAllowed({ may, title }: { may: May; title: string }) {
  if (may.allowed) return null;
  return (
    <Alert variant="light" color="blue" icon={<Lock />} title={title} data-testid="not-allowed">
      {may.reason} Enter another key before you begin.
    </Alert>
  );
}
