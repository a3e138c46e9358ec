/** The way to the run that a step had begun and that has failed it. */

import { Anchor } from "@mantine/core";
import { Link } from "@tanstack/react-router";

// As Trunkline writes it, of the step itself or of the item that has failed it.
const NAMED = /^(?:Item \d+: )?Run (\S+) of workflow /;

/** The id of that run, which the message begins with; null: the failure is not that of another run. */
export function childRunIn({ code, message }: { readonly code: string; readonly message: string }): string | null {
  return code === "child_failed" || code === "child_cancelled" ? (NAMED.exec(message)?.[1] ?? null) : null;
}

export function ChildLink({ run }: { run: string }) {
  return (
    <Anchor component={Link} to="/runs/$run" params={{ run } as never} size="sm" c="inherit" underline="always" data-testid="child-run">
      Look into that run
    </Anchor>
  );
}
