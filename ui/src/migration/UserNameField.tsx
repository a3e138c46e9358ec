/** The name of the user for the history, if no API keys are in use. The browser remembers it. */

import { TextInput } from "@mantine/core";
import { useLocalStorage } from "@mantine/hooks";

import { key } from "../api/apiKey.ts";

export function useUserName() {
  return useLocalStorage({ key: "trunkline.who", defaultValue: "", getInitialValueInEffect: false });
}

export function UserNameField({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  // The API key identifies the user.
  if (key.read() !== null) return null;
  return (
    <TextInput
      label="Your name"
      description="Recorded in the history, because this server does not use API keys."
      maxLength={200}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
      data-testid="who"
    />
  );
}
