/** The resizable panes of the run page; stacked on narrow screens. */

import { Splitter } from "@mantine/core";
import { useLocalStorage, useMediaQuery } from "@mantine/hooks";
import { type ReactNode, useEffect, useRef } from "react";

import classes from "./RunPage.module.css";

type Sizes = `${number}%`[];

function useSizes(key: string, first: Sizes) {
  return useLocalStorage<Sizes>({ key: `trunkline.panes.${key}`, defaultValue: first, getInitialValueInEffect: false });
}

export function Side(parts: { top: ReactNode; bottom: ReactNode; aside: ReactNode }) {
  const roomy = useMediaQuery("(min-width: 75em)", undefined, { getInitialValueInEffect: false });
  // The sizes are stored per layout.
  return roomy ? (
    <Split key="roomy" {...parts} name="run.across" first={["62%", "38%"]} />
  ) : (
    <Split key="tight" {...parts} name="run.across.tight" first={["54%", "46%"]} />
  );
}

function Split({
  top,
  bottom,
  aside,
  name,
  first,
}: {
  top: ReactNode;
  bottom: ReactNode;
  aside: ReactNode;
  name: string;
  first: Sizes;
}) {
  const [across, setAcross] = useSizes(name, first);
  const [down, setDown] = useSizes("run.down", ["55%", "45%"]);
  return (
    <Splitter
      className={classes["split"]}
      sizes={across}
      onSizeChange={(sizes) => setAcross(sizes as Sizes)}
      lineSize={1}
    >
      <Splitter.Pane defaultSize={first[0]!} min="30%">
        <Splitter
          className={classes["split"]}
          orientation="vertical"
          sizes={down}
          onSizeChange={(sizes) => setDown(sizes as Sizes)}
          lineSize={1}
        >
          <Splitter.Pane defaultSize="55%" min="15%" collapsible className={classes["pane"]}>
            {top}
          </Splitter.Pane>
          <Splitter.Pane defaultSize="45%" min="15%" collapsible className={classes["pane"]}>
            {bottom}
          </Splitter.Pane>
        </Splitter>
      </Splitter.Pane>
      <Splitter.Pane defaultSize={first[1]!} min="20%" collapsible className={classes["aside"]}>
        {aside}
      </Splitter.Pane>
    </Splitter>
  );
}

/** Scrolls to the lower pane when the selection changes; `chosen` identifies the selection. */
export function Stacked({
  parts: [top, bottom, aside],
  chosen,
}: {
  parts: readonly [ReactNode, ReactNode, ReactNode];
  chosen: string | null;
}) {
  const below = useRef<HTMLDivElement>(null);
  const shown = useRef(chosen);
  useEffect(() => {
    if (shown.current === chosen) return;
    shown.current = chosen;
    const place = below.current!.getBoundingClientRect().top;
    // A selection in the lower pane is already visible.
    if (chosen === null || (place >= 0 && place < innerHeight / 2)) return;
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    below.current!.scrollIntoView({ behavior: calm ? "instant" : "smooth", block: "start" });
  }, [chosen]);
  return (
    <>
      <div className={classes["stacked"]}>{top}</div>
      <div className={classes["stacked"]}>{bottom}</div>
      <div ref={below} className={classes["below"]}>
        {aside}
      </div>
    </>
  );
}
