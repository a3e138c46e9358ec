/** The command that sends a first message to a published agent or workflow. */

import { literal } from "../wire/quoting.ts";

export function firstMessageCurl(url: string, needsKey: boolean): string {
  const message = { messageId: "m-1", role: "ROLE_USER", parts: [{ text: "Hello" }] };
  const request = { jsonrpc: "2.0", id: 1, method: "SendMessage", params: { message } };
  const headers = ["'Content-Type: application/json'", "'A2A-Version: 1.0'"];
  if (needsKey) headers.push('"Authorization: Bearer $TRUNKLINE_API_KEY"');
  return [
    `curl -s ${literal(url)}`,
    ...headers.map((header) => `-H ${header}`),
    `-d '${JSON.stringify(request)}'`,
  ].join(" \\\n  ");
}
