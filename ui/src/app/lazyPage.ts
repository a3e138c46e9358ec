/**
 * A page whose script is loaded on demand.
 *
 * While the server is unreachable, the page waits instead of failing. A script that cannot be loaded after that belongs
 * to another version, and the router reloads the document.
 */

import { lazyRouteComponent } from "@tanstack/react-router";

import { waitUntilReachable } from "../api/connection.ts";

export function lazyPage<Module extends Record<string, unknown>, Name extends keyof Module>(
  load: () => Promise<Module>,
  name: Name,
) {
  return lazyRouteComponent(
    () =>
      load().catch(async () => {
        await waitUntilReachable();
        return load();
      }),
    name,
  );
}
