/** Pages of exchanges, as the API gives them. */

import { api, body } from "../api/client.ts";
import type { components, operations } from "../api/schema.d.ts";

type Query = Omit<NonNullable<operations["list_run_exchanges"]["parameters"]["query"]>, "format" | "cursor">;
export type WirePage = components["schemas"]["WirePage"];

/** `cursor`: of the page before; null: the first. */
export async function wirePage(
  run: string,
  asked: Query,
  cursor: string | null,
  signal: AbortSignal,
): Promise<WirePage> {
  const query = { ...asked, ...(cursor === null ? {} : { cursor }) };
  // The other form of the answer, the archive, was not asked for.
  return (await body(api.GET("/api/v1/runs/{run}/wire", { params: { path: { run }, query }, signal }))) as WirePage;
}
