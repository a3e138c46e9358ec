/** Every view is a URL: paths for things, the query for what is selected and filtered. */

import { createRootRoute, createRoute, createRouter, lazyRouteComponent, redirect } from "@tanstack/react-router";

import { runsSearch } from "../runs/list/search.ts";
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

export const runsRoute = createRoute({
  getParentRoute: () => root,
  path: "/runs",
  validateSearch: runsSearch,
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

export interface WorkflowsSearch {
  readonly q?: string;
}

export const workflowsRoute = createRoute({
  getParentRoute: () => root,
  path: "/workflows",
  validateSearch: (search: Record<string, unknown>): WorkflowsSearch => ({
    ...(search["q"] !== undefined && search["q"] !== "" ? { q: String(search["q"]) } : {}),
  }),
  component: lazyRouteComponent(() => import("../workflows/WorkflowsPage.tsx"), "WorkflowsPage"),
});

export interface WorkflowSearch {
  readonly version?: number;
  readonly step?: string;
  readonly tab?: "versions";
  /** The version that another is compared with. */
  readonly against?: number;
}

export const workflowRoute = createRoute({
  getParentRoute: () => root,
  path: "/workflows/$workflow",
  validateSearch: (search: Record<string, unknown>): WorkflowSearch => ({
    ...(typeof search["version"] === "number" ? { version: search["version"] } : {}),
    ...(typeof search["step"] === "string" ? { step: search["step"] } : {}),
    ...(search["tab"] === "versions" ? { tab: search["tab"] } : {}),
    ...(typeof search["against"] === "number" ? { against: search["against"] } : {}),
  }),
  component: lazyRouteComponent(() => import("../workflows/WorkflowPage.tsx"), "WorkflowPage"),
});

export const editWorkflowRoute = createRoute({
  getParentRoute: () => root,
  path: "/workflows/$workflow/edit",
  validateSearch: (search: Record<string, unknown>): Pick<WorkflowSearch, "version" | "step"> => ({
    ...(typeof search["version"] === "number" ? { version: search["version"] } : {}),
    ...(typeof search["step"] === "string" ? { step: search["step"] } : {}),
  }),
  component: lazyRouteComponent(() => import("../workflows/EditorPage.tsx"), "EditorPage"),
});

// Not below /workflows: there it would take a name away from them.
export const newWorkflowRoute = createRoute({
  getParentRoute: () => root,
  path: "/new-workflow",
  component: lazyRouteComponent(() => import("../workflows/NewWorkflowPage.tsx"), "NewWorkflowPage"),
});

export interface AgentsSearch {
  readonly q?: string;
  readonly speaks?: string;
  readonly state?: string;
}

export const agentsRoute = createRoute({
  getParentRoute: () => root,
  path: "/agents",
  validateSearch: (search: Record<string, unknown>): AgentsSearch => ({
    ...(search["q"] !== undefined && search["q"] !== "" ? { q: String(search["q"]) } : {}),
    ...(typeof search["speaks"] === "string" ? { speaks: search["speaks"] } : {}),
    ...(typeof search["state"] === "string" ? { state: search["state"] } : {}),
  }),
  component: lazyRouteComponent(() => import("../agents/AgentsPage.tsx"), "AgentsPage"),
});

export interface AgentSearch {
  readonly tab?: "calls" | "card" | "checks" | "try";
  /** The report that is shown; left out: the latest. */
  readonly check?: string;
  /** How many minutes the charts show; left out: an hour. */
  readonly minutes?: number;
}

export const agentRoute = createRoute({
  getParentRoute: () => root,
  path: "/agents/$agent",
  validateSearch: (search: Record<string, unknown>): AgentSearch => {
    const tab = (["calls", "card", "checks", "try"] as const).find((each) => each === search["tab"]);
    return {
      ...(tab === undefined ? {} : { tab }),
      ...(typeof search["check"] === "string" ? { check: search["check"] } : {}),
      ...(typeof search["minutes"] === "number" ? { minutes: search["minutes"] } : {}),
    };
  },
  component: lazyRouteComponent(() => import("../agents/AgentPage.tsx"), "AgentPage"),
});

// Not below /agents: there they would take names away from them.
export const newAgentRoute = createRoute({
  getParentRoute: () => root,
  path: "/new-agent",
  component: lazyRouteComponent(() => import("../agents/NewAgentPage.tsx"), "NewAgentPage"),
});

export const editAgentRoute = createRoute({
  getParentRoute: () => root,
  path: "/agents/$agent/edit",
  component: lazyRouteComponent(() => import("../agents/EditAgentPage.tsx"), "EditAgentPage"),
});

export interface StartSearch {
  readonly version?: number;
}

export const startRoute = createRoute({
  getParentRoute: () => root,
  path: "/workflows/$workflow/start",
  validateSearch: (search: Record<string, unknown>): StartSearch => ({
    ...(typeof search["version"] === "number" ? { version: search["version"] } : {}),
  }),
  component: lazyRouteComponent(() => import("../workflows/start/StartPage.tsx"), "StartPage"),
});

export interface InboxSearch {
  readonly item?: string;
  readonly kind?: "input" | "auth" | "outcome";
}

export const inboxRoute = createRoute({
  getParentRoute: () => root,
  path: "/inbox",
  validateSearch: (search: Record<string, unknown>): InboxSearch => {
    const kind = (["input", "auth", "outcome"] as const).find((each) => each === search["kind"]);
    return {
      ...(typeof search["item"] === "string" ? { item: search["item"] } : {}),
      ...(kind === undefined ? {} : { kind }),
    };
  },
  component: lazyRouteComponent(() => import("../inbox/InboxPage.tsx"), "InboxPage"),
});

const routes = root.addChildren([home, runsRoute, runRoute, workflowsRoute, workflowRoute, editWorkflowRoute, newWorkflowRoute, agentsRoute, agentRoute, newAgentRoute, editAgentRoute, startRoute, inboxRoute]);

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
