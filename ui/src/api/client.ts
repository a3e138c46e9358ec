/** The REST API as typed calls. Every failure is a `Problem` with its cause, its fix and the correlation id. */

import createClient, { type Middleware } from "openapi-fetch";

import { recordResponseTime } from "./serverClock.ts";
import { checkConnection } from "./connection.ts";
import { parseResponse } from "./exactJson.ts";
import { key } from "./apiKey.ts";
import { NoResponseError, Problem, problemOf } from "./problem.ts";
import type { paths } from "./schema.d.ts";

// A proxy in front of Trunkline returns these when Trunkline is unreachable.
const UNREACHABLE = new Set([502, 503, 504]);
const KEY_NEEDED = 401;
// A POST that changes nothing: its input is too long for a URL.
const READ_BY_POST: keyof paths = "/api/v1/workflow-validation";

const asked = new WeakMap<Request, number>();

const authorize: Middleware = {
  onRequest({ request }) {
    asked.set(request, Date.now());
    const present = key.read();
    if (present !== null && !request.headers.has("Authorization"))
      request.headers.set("Authorization", `Bearer ${present}`);
    return request;
  },
  async onResponse({ request, response, options }) {
    const when = asked.get(request);
    if (when !== undefined) recordResponseTime(response.headers.get("Date"), when);
    if (UNREACHABLE.has(response.status)) void checkConnection();
    if (response.status === KEY_NEEDED) {
      // The key may have been replaced since the request was sent.
      if (request.headers.get("Authorization") === `Bearer ${key.read()}`) key.refuse();
      if (!response.url.endsWith("/me")) key.recheck();
    }
    if (!response.ok) throw await problemOf(response);
    return options.parseAs === "json" ? await readExactly(response) : response;
  },
  async onError({ error, request, schemaPath }) {
    if (error instanceof Problem) return error;
    // The caller cancelled the request.
    if (error instanceof DOMException && error.name === "AbortError") return error;
    const known = checkConnection();
    if (request.method === "GET" || schemaPath === READ_BY_POST) return new NoResponseError("read");
    // The advice that is shown depends on whether Trunkline is reachable.
    await known;
    return new NoResponseError(request.headers.has("Idempotency-Key") ? "idempotent change" : "change");
  },
};

/** The response, with its JSON parsed so that numbers keep all their digits. */
async function readExactly(response: Response): Promise<Response> {
  const text = await response.text();
  const answer = new Response(null, response);
  if (text === "") return answer;
  answer.json = () => Promise.resolve(parseResponse(text));
  // Without a Content-Length, `openapi-fetch` would parse the text itself.
  answer.headers.set("Content-Length", String(text.length));
  return answer;
}

export const api = createClient<paths>({ baseUrl: window.location.origin });
api.use(authorize);

/** The body of a response that always has one. */
export async function body<Body>(call: Promise<{ data?: Body }>): Promise<Body> {
  const { data } = await call;
  return data as Body;
}
