/** A value of a run: as text, as a JSON tree, or its files. */

import { Group, SegmentedControl, Stack, Text } from "@mantine/core";
import { useMemo } from "react";

import { FileCard } from "./FileCard.tsx";
import { filesIn } from "./files.ts";
import { JsonTree } from "./JsonTree.tsx";
import { LongText } from "./LongText.tsx";

export type Form = "text" | "json" | "files";

/** `root` is the expression that refers to the value; `form` null selects a suitable format. */
export function ValueView({
  value,
  root,
  label,
  form,
  onForm,
}: {
  value: unknown;
  root: string;
  label: string;
  form: string | null;
  onForm: (form: Form) => void;
}) {
  const text = useMemo(() => textOf(value), [value]);
  const files = useMemo(() => filesIn(value), [value]);
  const forms: readonly { value: Form; label: string }[] = [
    ...(text === null ? [] : [{ value: "text" as const, label: "Text" }]),
    { value: "json", label: "JSON" },
    ...(files.length === 0 ? [] : [{ value: "files" as const, label: `Files (${files.length})` }]),
  ];
  const shown = forms.find((each) => each.value === form)?.value ?? forms[0]!.value;
  return (
    <Stack gap="xs" data-testid="value">
      {forms.length > 1 && (
        <Group>
          <SegmentedControl
            size="xs"
            aria-label={`Format of the ${label}`}
            data={[...forms]}
            value={shown}
            onChange={(chosen) => onForm(chosen)}
          />
        </Group>
      )}
      {shown === "text" && <LongText text={text!} label={label} name={`${label}.txt`} />}
      {shown === "json" && <JsonTree key={root} value={value} root={root} label={label} />}
      {shown === "files" && (
        <Stack gap="xs" data-testid="files">
          {files.map((file, place) => (
            <FileCard key={place} file={file} />
          ))}
        </Stack>
      )}
    </Stack>
  );
}

export function NoValue({ children }: { children: string }) {
  return (
    <Text size="sm" c="dimmed" data-testid="no-value">
      {children}
    </Text>
  );
}

/** The readable text: the value itself, or the text field of an agent's output. */
function textOf(value: unknown): string | null {
  if (typeof value === "string") return value;
  if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
  const { text } = value as { text?: unknown };
  return typeof text === "string" && text !== "" ? text : null;
}
