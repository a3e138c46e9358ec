/** The labels of a run. On the run page, each leads to the runs that have it, too. */

import { escapeBidi } from "../app/bidi.ts";
import { AnchorLink } from "../app/links.tsx";
import classes from "./LabelChips.module.css";

type Labels = Readonly<Record<string, string>>;

export function LabelChips({ labels }: { labels: Labels }) {
  const texts = textsOf(labels);
  if (texts.length === 0) return null;
  return (
    <div className={classes["chips"]} data-testid="run-labels">
      {texts.map((text) => (
        <span key={text} className={classes["chip"]} title={text}>
          {escapeBidi(text)}
        </span>
      ))}
    </div>
  );
}

export function LabelLinks({ labels }: { labels: Labels }) {
  return (
    <span className={classes["chips"]} data-testid="run-labels">
      {textsOf(labels).map((text) => (
        <AnchorLink
          key={text}
          to="/runs"
          search={{ label: [text] }}
          className={classes["chip"]}
          title={`Runs with the label ${text}`}
        >
          {escapeBidi(text)}
        </AnchorLink>
      ))}
    </span>
  );
}

function textsOf(labels: Labels): string[] {
  return Object.entries(labels).map(([key, value]) => `${key}:${value}`);
}
