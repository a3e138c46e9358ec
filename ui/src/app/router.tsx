/** Every view is a URL: paths for things, the query for what is selected and filtered. */

import { createRootRoute, createRoute, createRouter, lazyRouteComponent, redirect } from "@tanstack/react-router";

import { Placeholder } from "./Loading.tsx";
import { NotFound } from "./NotFound.tsx";
import { RouteProblem } from "./RouteProblem.tsx";
import { Shell } from "./Shell.tsx";

const root = createRootRoute({
  component: Shell,
  notFoundComponent: NotFound,
  errorComponent: RouteProblem,
});

const home = createRoute({
  getParentRoute: () => root,
  path: "/",
  beforeLoad: () => {
    throw redirect({ to: "/runs", search: {} });
  },
});

export interface RunsSearch {
  readonly status?: string;
  readonly workflow?: string;
}

export const runsRoute = createRoute({
  getParentRoute: () => root,
  path: "/runs",
  validateSearch: (search: Record<string, unknown>): RunsSearch => ({
    ...(typeof search["status"] === "string" ? { status: search["status"] } : {}),
    ...(typeof search["workflow"] === "string" ? { workflow: search["workflow"] } : {}),
  }),
  component: lazyRouteComponent(() => import("../runs/RunsPage.tsx"), "RunsPage"),
});

export interface RunSearch {
  readonly step?: string;
  readonly attempt?: number;
  readonly tab?: string;
}

export const runRoute = createRoute({
  getParentRoute: () => root,
  path: "/runs/$run",
  validateSearch: (search: Record<string, unknown>): RunSearch => ({
    ...(typeof search["step"] === "string" ? { step: search["step"] } : {}),
    ...(typeof search["attempt"] === "number" ? { attempt: search["attempt"] } : {}),
    ...(typeof search["tab"] === "string" ? { tab: search["tab"] } : {}),
  }),
  component: lazyRouteComponent(() => import("../runs/RunPage.tsx"), "RunPage"),
});

const routes = root.addChildren([home, runsRoute, runRoute]);

export const router = createRouter({
  routeTree: routes,
  defaultPreload: "intent",
  defaultErrorComponent: RouteProblem,
  defaultPendingComponent: Placeholder,
  // A page that is there sooner comes without a flicker.
  defaultPendingMs: 150,
  defaultPendingMinMs: 300,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
