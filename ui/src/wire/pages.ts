/** Loads pages of exchanges. */

import { api, body } from "../api/client.ts";
import type { components, operations } from "../api/schema.d.ts";

type Query = Omit<NonNullable<operations["list_run_exchanges"]["parameters"]["query"]>, "format" | "cursor">;
export type WirePage = components["schemas"]["WirePage"];

/** `cursor`: the cursor of the previous page; null for the first page. */
export async function wirePage(
  run: string,
  asked: Query,
  cursor: string | null,
  signal: AbortSignal,
): Promise<WirePage> {
  const query = { ...asked, ...(cursor === null ? {} : { cursor }) };
  // The response is never an archive, because none was requested.
  return (await body(api.GET("/api/v1/runs/{run}/wire", { params: { path: { run }, query }, signal }))) as WirePage;
}
