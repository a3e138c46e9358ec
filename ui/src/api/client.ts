/** The REST API as typed calls. Every failure is a `Problem`: what, why, fix and the correlation id. */

import createClient, { type Middleware } from "openapi-fetch";

import { hearAnswer } from "./clock.ts";
import { doubtConnection } from "./connection.ts";
import { parseAnswer } from "./exactJson.ts";
import { key } from "./key.ts";
import { NoAnswer, Problem, problemOf } from "./problem.ts";
import type { paths } from "./schema.d.ts";

// What something before Trunkline says of a Trunkline that does not answer.
const NOBODY_THERE = new Set([502, 503, 504]);
const KEY_NEEDED = 401;
// It changes nothing, but an address has no room for it.
const LONG_QUESTION: keyof paths = "/api/v1/workflow-validation";

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
    if (when !== undefined) hearAnswer(response.headers.get("Date"), when);
    if (NOBODY_THERE.has(response.status)) void doubtConnection();
    if (response.status === KEY_NEEDED) {
      // There may be another by now.
      if (request.headers.get("Authorization") === `Bearer ${key.read()}`) key.refuse();
      if (!response.url.endsWith("/me")) key.doubt();
    }
    if (!response.ok) throw await problemOf(response);
    return options.parseAs === "json" ? await readExactly(response) : response;
  },
  async onError({ error, request, schemaPath }) {
    if (error instanceof Problem) return error;
    // Nobody waits for it any more.
    if (error instanceof DOMException && error.name === "AbortError") return error;
    const known = doubtConnection();
    if (request.method === "GET" || schemaPath === LONG_QUESTION) return new NoAnswer("read");
    // What to do about it depends on that.
    await known;
    return new NoAnswer(request.headers.has("Idempotency-Key") ? "change that is made once" : "change");
  },
};

/** The answer with its JSON read so that no number in a value changes. */
async function readExactly(response: Response): Promise<Response> {
  const text = await response.text();
  const answer = new Response(null, response);
  if (text === "") return answer;
  answer.json = () => Promise.resolve(parseAnswer(text));
  // Of an answer that says no length `openapi-fetch` would parse the text by itself.
  answer.headers.set("Content-Length", String(text.length));
  return answer;
}

export const api = createClient<paths>({ baseUrl: window.location.origin });
api.use(authorize);

/** The body of an answer that is there by contract. */
export async function body<Body>(call: Promise<{ data?: Body }>): Promise<Body> {
  const { data } = await call;
  return data as Body;
}
