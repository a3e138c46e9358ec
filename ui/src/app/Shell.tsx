/** The frame of every page: header, navigation, and the connection banner. */

import { AppShell, Burger, Group, Kbd, Text, UnstyledButton } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { Link, Outlet, useRouter, useRouterState } from "@tanstack/react-router";
import { Search } from "lucide-react";
import { useEffect } from "react";

import { InboxCount } from "../inbox/InboxCount.tsx";
import { callerQuery } from "./permissions.ts";
import { Account } from "./Account.tsx";
import { ConnectionBanner } from "./ConnectionBanner.tsx";
import { KeyGate } from "./KeyGate.tsx";
import { Navigation } from "./Navigation.tsx";
import { Palette } from "./palette/Palette.tsx";
import { NAVIGATION_ITEMS, type NavigationItem } from "./navigationItems.ts";
import classes from "./Shell.module.css";
import { MODIFIER, ShortcutList } from "./ShortcutList.tsx";
import { useShortcutEverywhere } from "./shortcuts.ts";
import { SchemeSwitch, TimesSwitch } from "./DisplaySwitches.tsx";
import { Toasts } from "./Toasts.tsx";
import { useAddressTitle } from "./title.ts";
import { useFocusOnNavigation } from "./useFocusOnNavigation.ts";

export function Shell() {
  const path = useRouterState({ select: (state) => state.location.pathname });
  const [menu, { toggle: toggleMenu, close: closeMenu }] = useDisclosure();
  const [palette, { toggle: togglePalette, open: openPalette, close: closePalette }] = useDisclosure();
  const [shortcuts, { open: openShortcuts, close: closeShortcuts }] = useDisclosure();
  // No requests before the API key is known.
  const isKnown = useQuery(callerQuery).isSuccess;
  useAddressTitle(path);
  useFocusOnNavigation();
  useEffect(closeMenu, [path, closeMenu]);
  useShortcutEverywhere("mod+k", "Open the command palette", togglePalette);
  useShortcutEverywhere("?", "Show keyboard shortcuts", openShortcuts);
  return (
    <AppShell
      header={{ height: 48 }}
      navbar={{ width: 176, breakpoint: "sm", collapsed: { mobile: !menu } }}
      padding={{ base: "sm", sm: "md" }}
      transitionDuration={0}
    >
      <a href="#main" className={classes["skip"]}>
        Skip to content
      </a>
      <AppShell.Header px={{ base: "xs", sm: "md" }}>
        <Group h="100%" gap="xs" wrap="nowrap">
          <Burger
            opened={menu}
            onClick={toggleMenu}
            hiddenFrom="sm"
            size="sm"
            aria-label={menu ? "Close menu" : "Open menu"}
            aria-expanded={menu}
            data-testid="menu"
          />
          <Link to="/runs" search={{}} className={classes["brand"]} aria-label="Trunkline home">
            <img src="/favicon.svg" alt="" width={22} height={22} />
            <Text fw={700} span>
              Trunkline
            </Text>
          </Link>
          <UnstyledButton
            className={classes["search"]}
            onClick={openPalette}
            aria-keyshortcuts="Control+K Meta+K"
            data-testid="open-palette"
          >
            <Search size={16} aria-hidden />
            <span className={classes["searchText"]}>Search or go to…</span>
            <Kbd size="xs" className={classes["searchKeys"]} aria-hidden>
              {MODIFIER} K
            </Kbd>
          </UnstyledButton>
          {isKnown && <InboxCount />}
          <TimesSwitch />
          <SchemeSwitch />
          <Account />
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="xs" aria-label="Main">
        <Navigation showShortcuts={openShortcuts} />
      </AppShell.Navbar>
      <AppShell.Main id="main" tabIndex={-1} className={classes["main"]}>
        <ConnectionBanner />
        <KeyGate>
          <Outlet />
        </KeyGate>
      </AppShell.Main>
      {NAVIGATION_ITEMS.map((place) => (
        <PlaceShortcut key={place.to} place={place} />
      ))}
      <Palette opened={palette} onClose={closePalette} showShortcuts={openShortcuts} />
      <Toasts />
      <ShortcutList opened={shortcuts} onClose={closeShortcuts} />
    </AppShell>
  );
}

function PlaceShortcut({ place }: { place: NavigationItem }) {
  const router = useRouter();
  useShortcutEverywhere(`g ${place.key}`, `Go to ${place.name.toLowerCase()}`, () => router.history.push(place.to));
  return null;
}
