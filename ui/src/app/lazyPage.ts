/**
 * A page whose script is loaded when it is wanted.
 *
 * While Trunkline does not answer there is no script to load: the page waits for it instead of failing. One that still
 * cannot be loaded then is of another version, and the router loads the document anew.
 */

import { lazyRouteComponent } from "@tanstack/react-router";

import { untilItAnswers } from "../api/connection.ts";

export function lazyPage<Module extends Record<string, unknown>, Name extends keyof Module>(
  load: () => Promise<Module>,
  name: Name,
) {
  return lazyRouteComponent(
    () =>
      load().catch(async () => {
        await untilItAnswers();
        return load();
      }),
    name,
  );
}
