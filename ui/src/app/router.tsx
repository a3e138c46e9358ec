/** The routes. Every view has a URL: the path names the resource, the query holds selection and filters. */

import { createRootRoute, createRoute, createRouter, redirect } from "@tanstack/react-router";

import { runsSearch } from "../runs/list/search.ts";
import { type ItemsSearch, itemsSearch } from "../runs/inspector/itemsSearch.ts";
import { type WireSearch, wireSearch } from "../wire/search.ts";
import { lazyPage } from "./lazyPage.ts";
import { Placeholder } from "./Loading.tsx";
import { NotFound } from "./NotFound.tsx";
import { RouteProblem } from "./RouteProblem.tsx";
import { Shell } from "./Shell.tsx";

const root = createRootRoute({
  component: Shell,
  notFoundComponent: NotFound,
  errorComponent: RouteProblem,
});

/** A text from the query; the router parses texts that look like numbers or booleans. */
function textIn<Name extends string>(search: Record<string, unknown>, name: Name): Partial<Record<Name, string>> {
  const value = search[name];
  if (value === "" || (typeof value !== "string" && typeof value !== "number" && typeof value !== "boolean")) return {};
  return { [name]: String(value) } as Record<Name, string>;
}

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
  component: lazyPage(() => import("../runs/RunsPage.tsx"), "RunsPage"),
});

export interface RunSearch extends WireSearch, ItemsSearch {
  readonly step?: string;
  readonly attempt?: number;
  readonly tab?: string;
  /** The expanded steps, separated by commas. */
  readonly open?: string;
}

export const runRoute = createRoute({
  getParentRoute: () => root,
  path: "/runs/$run",
  validateSearch: (search: Record<string, unknown>): RunSearch => ({
    ...(typeof search["step"] === "string" ? { step: search["step"] } : {}),
    ...(typeof search["attempt"] === "number" && Number.isSafeInteger(search["attempt"]) && search["attempt"] > 0
      ? { attempt: search["attempt"] }
      : {}),
    ...(typeof search["tab"] === "string" ? { tab: search["tab"] } : {}),
    ...(typeof search["open"] === "string" && search["open"] !== "" ? { open: search["open"] } : {}),
    ...wireSearch(search),
    ...itemsSearch(search),
  }),
  component: lazyPage(() => import("../runs/RunPage.tsx"), "RunPage"),
});

export interface WorkflowsSearch {
  readonly q?: string;
}

export const workflowsRoute = createRoute({
  getParentRoute: () => root,
  path: "/workflows",
  validateSearch: (search: Record<string, unknown>): WorkflowsSearch => ({
    ...textIn(search, "q"),
  }),
  component: lazyPage(() => import("../workflows/WorkflowsPage.tsx"), "WorkflowsPage"),
});

export interface WorkflowSearch {
  readonly version?: number;
  readonly step?: string;
  readonly tab?: "versions" | "published";
  /** The version to compare with. */
  readonly against?: number;
}

export const workflowRoute = createRoute({
  getParentRoute: () => root,
  path: "/workflows/$workflow",
  validateSearch: (search: Record<string, unknown>): WorkflowSearch => ({
    ...(typeof search["version"] === "number" ? { version: search["version"] } : {}),
    ...(typeof search["step"] === "string" ? { step: search["step"] } : {}),
    ...(search["tab"] === "versions" || search["tab"] === "published" ? { tab: search["tab"] } : {}),
    ...(typeof search["against"] === "number" ? { against: search["against"] } : {}),
  }),
  component: lazyPage(() => import("../workflows/WorkflowPage.tsx"), "WorkflowPage"),
});

export const editWorkflowRoute = createRoute({
  getParentRoute: () => root,
  path: "/workflows/$workflow/edit",
  validateSearch: (search: Record<string, unknown>): Pick<WorkflowSearch, "version" | "step"> => ({
    ...(typeof search["version"] === "number" ? { version: search["version"] } : {}),
    ...(typeof search["step"] === "string" ? { step: search["step"] } : {}),
  }),
  component: lazyPage(() => import("../workflows/EditorPage.tsx"), "EditorPage"),
});

// Not below /workflows, where it would collide with a workflow's name.
export const newWorkflowRoute = createRoute({
  getParentRoute: () => root,
  path: "/new-workflow",
  component: lazyPage(() => import("../workflows/NewWorkflowPage.tsx"), "NewWorkflowPage"),
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
    ...textIn(search, "q"),
    ...(typeof search["speaks"] === "string" ? { speaks: search["speaks"] } : {}),
    ...(typeof search["state"] === "string" ? { state: search["state"] } : {}),
  }),
  component: lazyPage(() => import("../agents/AgentsPage.tsx"), "AgentsPage"),
});

export interface AgentSearch {
  readonly tab?: "calls" | "card" | "checks" | "try" | "publish";
  /** The check report to show; the latest by default. */
  readonly check?: string;
  /** The time range of the charts; one hour by default. */
  readonly minutes?: number;
}

export const agentRoute = createRoute({
  getParentRoute: () => root,
  path: "/agents/$agent",
  validateSearch: (search: Record<string, unknown>): AgentSearch => {
    const tab = (["calls", "card", "checks", "try", "publish"] as const).find((each) => each === search["tab"]);
    return {
      ...(tab === undefined ? {} : { tab }),
      ...(typeof search["check"] === "string" ? { check: search["check"] } : {}),
      ...(typeof search["minutes"] === "number" ? { minutes: search["minutes"] } : {}),
    };
  },
  component: lazyPage(() => import("../agents/AgentPage.tsx"), "AgentPage"),
});

// Not below /agents, where they would collide with agent names.
export const newAgentRoute = createRoute({
  getParentRoute: () => root,
  path: "/new-agent",
  component: lazyPage(() => import("../agents/NewAgentPage.tsx"), "NewAgentPage"),
});

export const editAgentRoute = createRoute({
  getParentRoute: () => root,
  path: "/agents/$agent/edit",
  component: lazyPage(() => import("../agents/EditAgentPage.tsx"), "EditAgentPage"),
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
  component: lazyPage(() => import("../workflows/start/StartPage.tsx"), "StartPage"),
});

export interface InboxSearch {
  readonly item?: string;
  readonly kind?: "input" | "auth" | "person" | "outcome" | "compensation";
  readonly whose?: "mine" | "unassigned" | "overdue";
}

export const inboxRoute = createRoute({
  getParentRoute: () => root,
  path: "/inbox",
  validateSearch: (search: Record<string, unknown>): InboxSearch => {
    const kind = (["input", "auth", "person", "outcome", "compensation"] as const).find(
      (each) => each === search["kind"],
    );
    const whose = (["mine", "unassigned", "overdue"] as const).find((each) => each === search["whose"]);
    return {
      ...(typeof search["item"] === "string" ? { item: search["item"] } : {}),
      ...(kind === undefined ? {} : { kind }),
      ...(whose === undefined ? {} : { whose }),
    };
  },
  component: lazyPage(() => import("../inbox/InboxPage.tsx"), "InboxPage"),
});

export interface MigrationSearch {
  readonly q?: string;
}

export const migrationRoute = createRoute({
  getParentRoute: () => root,
  path: "/migration",
  validateSearch: (search: Record<string, unknown>): MigrationSearch => textIn(search, "q"),
  component: lazyPage(() => import("../migration/MigrationPage.tsx"), "MigrationPage"),
});

export interface AgentMigrationSearch {
  /** The action whose dialog is open. */
  readonly act?: "ready" | "shadow" | "canary" | "cutover" | "rollback" | "finish" | "check";
  readonly verdict?: "agree" | "differ" | "new_failed" | "old_failed" | "both_failed";
  readonly comparison?: string;
}

export const agentMigrationRoute = createRoute({
  getParentRoute: () => root,
  path: "/migration/$agent",
  validateSearch: (search: Record<string, unknown>): AgentMigrationSearch => {
    const act = (["ready", "shadow", "canary", "cutover", "rollback", "finish", "check"] as const).find(
      (each) => each === search["act"],
    );
    const verdict = (["agree", "differ", "new_failed", "old_failed", "both_failed"] as const).find(
      (each) => each === search["verdict"],
    );
    return {
      ...(act === undefined ? {} : { act }),
      ...(verdict === undefined ? {} : { verdict }),
      ...(typeof search["comparison"] === "string" ? { comparison: search["comparison"] } : {}),
    };
  },
  component: lazyPage(() => import("../migration/AgentMigrationPage.tsx"), "AgentMigrationPage"),
});

export const triggersRoute = createRoute({
  getParentRoute: () => root,
  path: "/triggers",
  component: lazyPage(() => import("../triggers/TriggersPage.tsx"), "TriggersPage"),
});

export const triggerRoute = createRoute({
  getParentRoute: () => root,
  path: "/triggers/$trigger",
  component: lazyPage(() => import("../triggers/TriggerPage.tsx"), "TriggerPage"),
});

export const editTriggerRoute = createRoute({
  getParentRoute: () => root,
  path: "/triggers/$trigger/edit",
  component: lazyPage(() => import("../triggers/EditTriggerPage.tsx"), "EditTriggerPage"),
});

// Not below /triggers, where it would collide with a trigger's name.
export const newTriggerRoute = createRoute({
  getParentRoute: () => root,
  path: "/new-trigger",
  component: lazyPage(() => import("../triggers/NewTriggerPage.tsx"), "NewTriggerPage"),
});

export const subscriptionsRoute = createRoute({
  getParentRoute: () => root,
  path: "/subscriptions",
  component: lazyPage(() => import("../subscriptions/SubscriptionsPage.tsx"), "SubscriptionsPage"),
});

export const subscriptionRoute = createRoute({
  getParentRoute: () => root,
  path: "/subscriptions/$subscription",
  component: lazyPage(() => import("../subscriptions/SubscriptionPage.tsx"), "SubscriptionPage"),
});

export const editSubscriptionRoute = createRoute({
  getParentRoute: () => root,
  path: "/subscriptions/$subscription/edit",
  component: lazyPage(() => import("../subscriptions/SubscriptionForm.tsx"), "EditSubscriptionPage"),
});

// Not below /subscriptions, where it would collide with a subscription's name.
export const newSubscriptionRoute = createRoute({
  getParentRoute: () => root,
  path: "/new-subscription",
  component: lazyPage(() => import("../subscriptions/SubscriptionForm.tsx"), "NewSubscriptionPage"),
});

export interface EventsSearch {
  readonly type?: string;
  /** Requires a type. */
  readonly key?: string;
}

export const eventsRoute = createRoute({
  getParentRoute: () => root,
  path: "/events",
  validateSearch: (search: Record<string, unknown>): EventsSearch => ({
    ...textIn(search, "type"),
    ...textIn(search, "key"),
  }),
  component: lazyPage(() => import("../events/EventsPage.tsx"), "EventsPage"),
});

const TABS = ["overview", "letters", "audit", "keys"] as const;
const AUDITED = [
  "run",
  "workflow",
  "agent",
  "migration",
  "key",
  "secret",
  "cache",
  "dead_letter",
  "trigger",
  "subscription",
  "schema",
] as const;
export type SystemTab = (typeof TABS)[number];

export interface SystemSearch {
  readonly tab?: SystemTab;
  /** The selected dead letter. */
  readonly letter?: string;
  readonly who?: string;
  readonly kind?: (typeof AUDITED)[number];
  readonly subject?: string;
}

export const systemRoute = createRoute({
  getParentRoute: () => root,
  path: "/system",
  validateSearch: (search: Record<string, unknown>): SystemSearch => {
    const tab = TABS.find((each) => each === search["tab"]);
    const kind = AUDITED.find((each) => each === search["kind"]);
    return {
      ...(tab === undefined ? {} : { tab }),
      ...(typeof search["letter"] === "string" ? { letter: search["letter"] } : {}),
      ...textIn(search, "who"),
      ...(kind === undefined ? {} : { kind }),
      ...textIn(search, "subject"),
    };
  },
  component: lazyPage(() => import("../system/SystemPage.tsx"), "SystemPage"),
});

const routes = root.addChildren([
  home,
  runsRoute,
  runRoute,
  workflowsRoute,
  workflowRoute,
  editWorkflowRoute,
  newWorkflowRoute,
  agentsRoute,
  agentRoute,
  newAgentRoute,
  editAgentRoute,
  startRoute,
  inboxRoute,
  triggersRoute,
  triggerRoute,
  editTriggerRoute,
  newTriggerRoute,
  subscriptionsRoute,
  subscriptionRoute,
  editSubscriptionRoute,
  newSubscriptionRoute,
  eventsRoute,
  migrationRoute,
  agentMigrationRoute,
  systemRoute,
]);

export const router = createRouter({
  routeTree: routes,
  // Unknown or invalid parameters are removed from the URL.
  search: { strict: true },
  defaultPreload: "intent",
  defaultErrorComponent: RouteProblem,
  defaultPendingComponent: Placeholder,
  // Pages that load faster than this appear without a loading indicator.
  defaultPendingMs: 150,
  defaultPendingMinMs: 300,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
