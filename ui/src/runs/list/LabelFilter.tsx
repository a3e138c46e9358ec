/** The filter by labels: one tag for each label, written as `key:value`. */

import { TagsInput } from "@mantine/core";
import { useState } from "react";

import classes from "./list.module.css";
import { isLabel } from "./search.ts";

const MOST_LABELS = 20;

export function LabelFilter({
  labels,
  onChange,
}: {
  labels: readonly string[];
  onChange: (labels: string[] | undefined) => void;
}) {
  const [text, setText] = useState("");
  const [refused, setRefused] = useState(false);
  return (
    <TagsInput
      aria-label="Filter by label"
      placeholder={labels.length === 0 ? "Label, as key:value" : ""}
      value={[...labels]}
      maxTags={MOST_LABELS}
      // A value can contain commas.
      splitChars={[]}
      searchValue={text}
      onSearchChange={(next) => {
        setText(next);
        setRefused(false);
      }}
      onChange={(next) => {
        const fitting = next.filter(isLabel);
        const rest = next.find((each) => !isLabel(each));
        setRefused(rest !== undefined);
        onChange(fitting.length === 0 ? undefined : fitting);
      }}
      error={refused ? "Write a label as key:value." : undefined}
      className={classes["labels"]}
      data-testid="filter-label"
    />
  );
}
