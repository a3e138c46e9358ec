/** The readable text of a definition: YAML verbatim, JSON as YAML or at least indented. */

import { formatted } from "../code/formatJson.ts";
import type { Workflow } from "./queries.ts";

export function textOf({ yaml, source }: Workflow): string {
  return yaml ?? formatted(source);
}
