/** A migration stage as an icon and a label in its colour. */

import classes from "./migration.module.css";
import type { Stage } from "./queries.ts";
import { LOOKS } from "./stages.ts";

export function StageBadge({ stage }: { stage: Stage }) {
  const { icon: Icon, name, color, told } = LOOKS[stage];
  return (
    <span className={classes["stage"]} style={{ color }} title={told} data-testid="stage" data-stage={stage}>
      <Icon size={15} aria-hidden />
      {name}
    </span>
  );
}
