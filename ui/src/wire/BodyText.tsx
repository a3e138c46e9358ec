/** A body of the wire: JSON laid out, every value as it was, or the text as it went; never anything but text. */

import { Group, SegmentedControl, Text } from "@mantine/core";
import { useMemo, useState } from "react";

import { sizeOf } from "../app/bytes.ts";
import { Copy } from "../app/Copy.tsx";
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
              aria-label={`How the ${label} is shown`}
              data={[
                { value: "pretty", label: "Pretty" },
                { value: "raw", label: "Raw" },
              ]}
              value={form}
              onChange={setForm}
            />
          )}
          <Copy text={shown} label="Copy" aria-label={`Copy the ${label}`} />
        </Group>
      </Group>
      <pre className={classes["body"]} tabIndex={0} aria-label={label} data-testid="body">
        {shown}
      </pre>
    </div>
  );
}
