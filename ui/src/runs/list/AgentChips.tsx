/** The agents of a run: the first names, and a count of the rest with a tooltip. */

import { VisuallyHidden } from "@mantine/core";

import { escapeBidi } from "../../app/bidi.ts";
import classes from "./list.module.css";

export function AgentChips({ agents, most }: { agents: readonly string[]; most: number }) {
  const shown = agents.slice(0, most);
  const rest = agents.slice(shown.length);
  return (
    <span className={classes["chips"]} data-testid="run-agents">
      {shown.map((agent) => (
        <span key={agent} className={classes["chip"]} title={agent}>
          {escapeBidi(agent)}
        </span>
      ))}
      {rest.length > 0 && (
        <span className={classes["chip"]} title={rest.join(", ")} data-testid="more-agents">
          <span aria-hidden>+{rest.length}</span>
          <VisuallyHidden>and {rest.join(", ")}</VisuallyHidden>
        </span>
      )}
    </span>
  );
}
