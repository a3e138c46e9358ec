/** A notice above a form that the API key does not permit sending it. */

import { Alert } from "@mantine/core";
import { Lock } from "lucide-react";

import type { Permission } from "./permissions.ts";

export function NotAllowed({ may, title }: { may: Permission; title: string }) {
  if (may.allowed) return null;
  return (
    <Alert variant="light" color="blue" icon={<Lock />} title={title} data-testid="not-allowed">
      {may.reason} Sign in with another API key first.
    </Alert>
  );
}
