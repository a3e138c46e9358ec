/** The REST API as typed calls. Every failure is a `Problem`: what, why, fix and the correlation id. */

import createClient, { type Middleware } from "openapi-fetch";

import { key } from "./key.ts";
import { Problem, problemOf, unreachable } from "./problem.ts";
import type { paths } from "./schema.d.ts";

const authorize: Middleware = {
  onRequest({ request }) {
    const present = key.read();
    if (present !== null) request.headers.set("Authorization", `Bearer ${present}`);
    return request;
  },
  async onResponse({ response }) {
    if (!response.ok) throw await problemOf(response);
    return response;
  },
  onError({ error }) {
    return error instanceof Problem ? error : unreachable(error);
  },
};

export const api = createClient<paths>({ baseUrl: window.location.origin });
api.use(authorize);

/** The body of an answer that is there by contract. */
export async function body<Body>(call: Promise<{ data?: Body }>): Promise<Body> {
  const { data } = await call;
  return data as Body;
}
