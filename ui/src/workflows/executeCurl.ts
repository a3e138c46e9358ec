/** The curl command that starts a run. */

import { key } from "../api/apiKey.ts";
import { literal } from "../wire/quoting.ts";

export function executeCurl(
  workflow: string,
  version: number | null,
  input: unknown,
  priority: number | null = null,
): string {
  const options = [
    ...(version === null ? [] : [`version=${version}`]),
    ...(priority === null ? [] : [`priority=${priority}`]),
  ];
  const query = options.length === 0 ? "" : `?${options.join("&")}`;
  const url = `${window.location.origin}/api/v1/workflows/${encodeURIComponent(workflow)}/execute${query}`;
  return [
    `curl -X POST ${literal(url)}`,
    // The copied command does not contain the API key itself.
    ...(key.read() === null ? [] : ['-H "Authorization: Bearer $TRUNKLINE_API_KEY"']),
    "-H 'Content-Type: application/json'",
    `-d ${literal(JSON.stringify(input))}`,
  ].join(" \\\n  ");
}
