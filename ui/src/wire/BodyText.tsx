/** A recorded body as formatted JSON or as raw text. It is never rendered as anything but text. */

import { Group, SegmentedControl, Text } from "@mantine/core";
import { useMemo, useState } from "react";

import { sizeOf } from "../app/bytes.ts";
import { CopyTextButton } from "../app/CopyTextButton.tsx";
import { formattedJson } from "../code/formatJson.ts";
import classes from "./wire.module.css";

export function BodyText({ text, label }: { text: string; label: string }) {
  const pretty = useMemo(() => formattedJson(text), [text]);
  const [form, setForm] = useState("pretty");
  if (text === "")
    return (
      <Text size="sm" c="dimmed">
        No body.
      </Text>
    );
  const shown = form === "pretty" && pretty !== null ? pretty : text;
  return (
    <div>
      <Group gap="xs" justify="space-between" mb={4}>
        <Text size="xs" c="dimmed">
          {sizeOf(new TextEncoder().encode(text).length)}
        </Text>
        <Group gap="xs">
          {pretty !== null && (
            <SegmentedControl
              size="xs"
              aria-label={`Format of the ${label}`}
              data={[
                { value: "pretty", label: "Pretty" },
                { value: "raw", label: "Raw" },
              ]}
              value={form}
              onChange={setForm}
            />
          )}
          <CopyTextButton text={shown} label="Copy" aria-label={`Copy the ${label}`} />
        </Group>
      </Group>
      <pre className={classes["body"]} tabIndex={0} aria-label={label} data-testid="body">
        {shown}
      </pre>
    </div>
  );
}
