/** The tabs of a page in one line. On narrow screens it scrolls and keeps the selected tab visible. */

import { Tabs } from "@mantine/core";
import { type ReactNode, useLayoutEffect, useRef } from "react";

import classes from "./TabStrip.module.css";

export function TabStrip({ chosen, label, children }: { chosen: string; label?: string; children: ReactNode }) {
  const list = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const strip = list.current!;
    const tab = strip.querySelector<HTMLElement>("[role=tab][aria-selected=true]");
    if (tab === null) return;
    // Scroll only the strip, not the page.
    const [before, after] = [tab.offsetLeft, tab.offsetLeft + tab.offsetWidth - strip.clientWidth];
    if (strip.scrollLeft > before) strip.scrollLeft = before;
    else if (strip.scrollLeft < after) strip.scrollLeft = after;
  }, [chosen]);
  return (
    <div className={classes["room"]}>
      <Tabs.List ref={list} className={classes["strip"]} {...(label === undefined ? {} : { "aria-label": label })}>
        {children}
      </Tabs.List>
    </div>
  );
}
