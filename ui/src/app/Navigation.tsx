/** The main navigation. */

import { NavLink, Text, UnstyledButton } from "@mantine/core";
import { Link, useRouterState } from "@tanstack/react-router";
import { Keyboard } from "lucide-react";

import classes from "./Shell.module.css";
import { NAVIGATION_ITEMS, navigationItemOf } from "./navigationItems.ts";

export function Navigation({ showShortcuts }: { showShortcuts: () => void }) {
  const here = useRouterState({ select: (state) => navigationItemOf(state.location.pathname) });
  return (
    <>
      {NAVIGATION_ITEMS.map((place) => {
        const { to, name, icon: Icon } = place;
        return (
          <NavLink
            key={to}
            component={Link}
            to={to}
            label={name}
            leftSection={<Icon size={16} aria-hidden />}
            active={place === here}
            aria-current={place === here ? "page" : undefined}
            data-testid={`nav-${name.toLowerCase()}`}
          />
        );
      })}
      <UnstyledButton className={classes["help"]} onClick={showShortcuts} data-testid="open-shortcuts">
        <Keyboard size={16} aria-hidden />
        <Text size="sm" span>
          Shortcuts
        </Text>
      </UnstyledButton>
    </>
  );
}
