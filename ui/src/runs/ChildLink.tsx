/** The way to the run that a step had begun and that has failed it. */

import { Anchor } from "@mantine/core";
import { Link } from "@tanstack/react-router";

/** The id of that run; null: the failure is not that of another run. */
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
      Look into that run
    </Anchor>
  );
}
