/** The items of the main navigation. */

import {
  Activity,
  AlarmClock,
  ArrowRightLeft,
  BellRing,
  Bot,
  Inbox,
  Network,
  Radio,
  Server,
  type LucideIcon,
} from "lucide-react";

export interface NavigationItem {
  readonly to: string;
  /** The page that creates one; outside of the list's path, where it could collide with a name. */
  readonly makes?: string;
  readonly name: string;
  readonly icon: LucideIcon;
  /** The second key of the shortcut, after `g`. */
  readonly key: string;
}

export const NAVIGATION_ITEMS: readonly NavigationItem[] = [
  { to: "/runs", name: "Runs", icon: Activity, key: "r" },
  { to: "/inbox", name: "Inbox", icon: Inbox, key: "i" },
  { to: "/workflows", makes: "/new-workflow", name: "Workflows", icon: Network, key: "w" },
  { to: "/triggers", makes: "/new-trigger", name: "Triggers", icon: AlarmClock, key: "t" },
  { to: "/events", name: "Events", icon: Radio, key: "e" },
  { to: "/subscriptions", makes: "/new-subscription", name: "Subscriptions", icon: BellRing, key: "u" },
  { to: "/agents", makes: "/new-agent", name: "Agents", icon: Bot, key: "a" },
  { to: "/migration", name: "Migration", icon: ArrowRightLeft, key: "m" },
  { to: "/system", name: "System", icon: Server, key: "s" },
];

export function navigationItemOf(path: string): NavigationItem | undefined {
  return NAVIGATION_ITEMS.find(({ to, makes }) => path === to || path === makes || path.startsWith(`${to}/`));
}
