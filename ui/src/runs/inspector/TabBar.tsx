/** The tabs of the inspector. The selected tab is kept in the URL. */

import { Tabs } from "@mantine/core";
import type { ReactNode } from "react";

import { TabStrip } from "../../app/TabStrip.tsx";
import classes from "./inspector.module.css";

export interface TabSpec {
  readonly name: string;
  readonly label: ReactNode;
  readonly show: () => ReactNode;
}

export interface Wish {
  readonly tab: string | null;
  readonly form: string | null;
}

export function wishOf(tab: string | null): Wish {
  if (tab === null) return { tab: null, form: null };
  const [name, form] = tab.split(".", 2);
  return { tab: name!, form: form ?? null };
}

export function TabBar({
  tabs,
  wish,
  first,
  onTab,
  label,
}: {
  tabs: readonly TabSpec[];
  wish: string | null;
  /** The tab to show if the URL has none or an unknown one. */
  first: string;
  onTab: (tab: string) => void;
  label: string;
}) {
  const names = tabs.map((tab) => tab.name);
  const shown = wish !== null && names.includes(wish) ? wish : names.includes(first) ? first : names[0]!;
  return (
    <Tabs value={shown} onChange={(tab) => tab !== null && onTab(tab)} keepMounted={false} className={classes["tabs"]}>
      <TabStrip chosen={shown} label={label}>
        {tabs.map((tab) => (
          <Tabs.Tab key={tab.name} value={tab.name} className={classes["tab"]} data-testid={`tab-${tab.name}`}>
            {tab.label}
          </Tabs.Tab>
        ))}
      </TabStrip>
      {tabs.map((tab) => (
        <Tabs.Panel key={tab.name} value={tab.name} className={classes["panel"]} data-testid={`panel-${tab.name}`}>
          {tab.name === shown && tab.show()}
        </Tabs.Panel>
      ))}
    </Tabs>
  );
}
