/** The places of a run's page: side by side with handles to move where there is room, one below the other where not. */

import { Splitter } from "@mantine/core";
import { useLocalStorage } from "@mantine/hooks";
import type { ReactNode } from "react";

import classes from "./RunPage.module.css";

type Sizes = `${number}%`[];

function useSizes(key: string, first: Sizes) {
  return useLocalStorage<Sizes>({ key: `trunkline.panes.${key}`, defaultValue: first, getInitialValueInEffect: false });
}

export function Side({ top, bottom, aside }: { top: ReactNode; bottom: ReactNode; aside: ReactNode }) {
  const [across, setAcross] = useSizes("run.across", ["62%", "38%"]);
  const [down, setDown] = useSizes("run.down", ["55%", "45%"]);
  return (
    <Splitter className={classes["split"]!} sizes={across} onSizeChange={(sizes) => setAcross(sizes as Sizes)} lineSize={1}>
      <Splitter.Pane defaultSize="62%" min="30%">
        <Splitter
          className={classes["split"]!}
          orientation="vertical"
          sizes={down}
          onSizeChange={(sizes) => setDown(sizes as Sizes)}
          lineSize={1}
        >
          <Splitter.Pane defaultSize="55%" min="15%" collapsible className={classes["pane"]!}>{top}</Splitter.Pane>
          <Splitter.Pane defaultSize="45%" min="15%" collapsible className={classes["pane"]!}>{bottom}</Splitter.Pane>
        </Splitter>
      </Splitter.Pane>
      <Splitter.Pane defaultSize="38%" min="20%" collapsible className={classes["aside"]!}>{aside}</Splitter.Pane>
    </Splitter>
  );
}

export function Stacked({ parts: [top, bottom, aside] }: { parts: readonly [ReactNode, ReactNode, ReactNode] }) {
  return (
    <>
      <div className={classes["stacked"]}>{top}</div>
      <div className={classes["stacked"]}>{bottom}</div>
      <div className={classes["below"]}>{aside}</div>
    </>
  );
}
