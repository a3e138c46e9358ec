/** Two texts and what is different between them: side by side, or one below the other where there is little room. */

import { MergeView, unifiedMergeView } from "@codemirror/merge";
import { EditorView } from "@codemirror/view";
import { useComputedColorScheme } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { useEffect, useRef } from "react";

import classes from "./code.module.css";
import { type Language, readable } from "./setup.ts";

export interface Side {
  readonly text: string;
  readonly label: string;
}

const COLLAPSE = { margin: 3, minSize: 6 };

export function CodeDiff({ before, after, language }: { before: Side; after: Side; language: Language }) {
  const frame = useRef<HTMLDivElement>(null);
  const dark = useComputedColorScheme("light") === "dark";
  const narrow = useMediaQuery("(max-width: 62em)", false, { getInitialValueInEffect: false });

  useEffect(() => {
    const parent = frame.current!;
    const shown = (side: Side) => ({ doc: side.text, extensions: readable(language, side.label, dark) });
    if (!narrow) {
      const view = new MergeView({ a: shown(before), b: shown(after), parent, collapseUnchanged: COLLAPSE });
      return () => view.destroy();
    }
    const { doc, extensions } = shown(after);
    const merge = unifiedMergeView({ original: before.text, mergeControls: false, collapseUnchanged: COLLAPSE });
    const view = new EditorView({ doc, parent, extensions: [extensions, merge] });
    return () => view.destroy();
  }, [before.text, before.label, after.text, after.label, language, dark, narrow]);

  return <div ref={frame} className={classes["diff"]} data-testid="diff" />;
}
