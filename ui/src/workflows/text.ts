/** A definition as one reads it: as it was written, and what was saved as JSON as YAML, or at least one thing to a line. */

import { formatted } from "../code/formatJson.ts";
import type { Workflow } from "./queries.ts";

export function textOf({ yaml, source }: Workflow): string {
  return yaml ?? formatted(source);
}
