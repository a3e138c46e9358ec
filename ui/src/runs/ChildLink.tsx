/** A link to the failed child run of a step. */

import { Anchor } from "@mantine/core";
import { Link } from "@tanstack/react-router";

/** The id of the child run that caused the failure, or null. */
export function childRunIn({ code, detail }: { readonly code: string; readonly detail?: unknown }): string | null {
  if ((code !== "child_failed" && code !== "child_cancelled") || typeof detail !== "object" || detail === null)
    return null;
  const { run_id: run } = detail as { readonly run_id?: unknown };
  return typeof run === "string" ? run : null;
}

export function ChildLink({ run }: { run: string }) {
  return (
    <Anchor
      component={Link}
      to="/runs/$run"
      params={{ run } as never}
      size="sm"
      c="inherit"
      underline="always"
      data-testid="child-run"
    >
      View child run
    </Anchor>
  );
}
