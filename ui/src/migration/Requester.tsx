/** Who asks, where no keys are in use: kept in this browser, and written into the history. */

import { TextInput } from "@mantine/core";
import { useLocalStorage } from "@mantine/hooks";

import { key } from "../api/key.ts";

export function useRequester() {
  return useLocalStorage({ key: "trunkline.who", defaultValue: "", getInitialValueInEffect: false });
}

export function RequesterField({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  // A key says for sure who it is.
  if (key.read() !== null) return null;
  return (
    <TextInput
      label="Who you are"
      description="For the history; nobody has to show a key here."
      maxLength={200}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
      data-testid="who"
    />
  );
}
