/** The frame of every page: where one can go, how the page looks, and whether Trunkline answers. */

import { ActionIcon, AppShell, Group, NavLink, Text, useMantineColorScheme } from "@mantine/core";
import { Link, Outlet, useRouterState } from "@tanstack/react-router";
import { Activity, Bot, Moon, Network, Server, Sun, SunMoon, type LucideIcon } from "lucide-react";

import classes from "./Shell.module.css";

interface Place {
  readonly to: string;
  readonly name: string;
  readonly icon: LucideIcon;
}

const PLACES: readonly Place[] = [
  { to: "/runs", name: "Runs", icon: Activity },
  { to: "/workflows", name: "Workflows", icon: Network },
  { to: "/agents", name: "Agents", icon: Bot },
  { to: "/system", name: "System", icon: Server },
];

export function Shell() {
  const path = useRouterState({ select: (state) => state.location.pathname });
  return (
    <AppShell header={{ height: 48 }} navbar={{ width: 176, breakpoint: "sm" }} padding="md">
      <AppShell.Header px="md">
        <Group h="100%" justify="space-between">
          <Link to="/runs" className={classes["brand"]!}>
            <img src="/favicon.svg" alt="" width={22} height={22} />
            <Text fw={700} span>Trunkline</Text>
          </Link>
          <SchemeSwitch />
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="xs" aria-label="Main">
        {PLACES.map(({ to, name, icon: Icon }) => (
          <NavLink
            key={to}
            component={Link}
            to={to}
            label={name}
            leftSection={<Icon size={16} aria-hidden />}
            active={path.startsWith(to)}
            data-testid={`nav-${name.toLowerCase()}`}
          />
        ))}
      </AppShell.Navbar>
      <AppShell.Main>
        <Outlet />
      </AppShell.Main>
    </AppShell>
  );
}

const NEXT = { auto: "light", light: "dark", dark: "auto" } as const;
const ICONS = { auto: SunMoon, light: Sun, dark: Moon };

function SchemeSwitch() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const Icon = ICONS[colorScheme];
  const next = NEXT[colorScheme];
  return (
    <ActionIcon
      variant="default"
      size="lg"
      aria-label={`Colours: ${colorScheme}. Change to ${next}`}
      title={`Colours: ${colorScheme}`}
      onClick={() => setColorScheme(next)}
      data-testid="scheme"
    >
      <Icon size={18} aria-hidden />
    </ActionIcon>
  );
}
