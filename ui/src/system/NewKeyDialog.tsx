/** Creates an API key and shows it, only this once. */

import { Button, Code, Group, Modal, Select, Stack, TagsInput, Text, TextInput } from "@mantine/core";
import { useState, type FormEvent } from "react";

import { serverNow } from "../api/serverClock.ts";
import { CopyTextButton } from "../app/CopyTextButton.tsx";
import type { Role } from "../app/permissions.ts";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { useCreateKey } from "./queries.ts";
import classes from "./system.module.css";

const DAY_MS = 86_400_000;
const ROLES: readonly { readonly value: Role; readonly label: string }[] = [
  { value: "caller", label: "caller: call published agents and workflows over A2A" },
  { value: "viewer", label: "viewer: read everything" },
  { value: "operator", label: "operator: also start and control runs" },
  { value: "admin", label: "admin: do everything" },
];
const LIFETIMES = [
  { value: "30", label: "In 30 days" },
  { value: "90", label: "In 90 days" },
  { value: "365", label: "In a year" },
  { value: "", label: "Never" },
];

export function NewKeyDialog({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>("viewer");
  const [publications, setPublications] = useState<string[]>([]);
  const [days, setDays] = useState("90");
  const creating = useCreateKey();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const expires_at = days === "" ? null : new Date(serverNow() + Number(days) * DAY_MS).toISOString();
    creating.mutate({ name: name.trim(), role, expires_at, publications: role === "caller" ? publications : [] });
  };
  if (creating.data !== undefined) return <CreatedKey name={name.trim()} text={creating.data.key} onClose={onClose} />;
  return (
    <Modal opened onClose={onClose} title="New API key" transitionProps={{ duration: 0 }}>
      <form onSubmit={submit}>
        <Stack gap="sm" data-testid="new-key-dialog">
          <TextInput
            label="Name"
            description="Who or what the key is for. The audit log shows it."
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
            maxLength={100}
            required
            data-autofocus
            data-testid="key-name"
          />
          <Select
            label="Role"
            data={ROLES}
            value={role}
            onChange={(value) => setRole(value ?? "viewer")}
            allowDeselect={false}
            data-testid="key-role"
          />
          {role === "caller" && (
            <TagsInput
              label="Publications"
              description="What the key can call: agents/NAME or workflows/NAME."
              value={publications}
              onChange={setPublications}
              splitChars={[",", " "]}
              acceptValueOnBlur
              data-testid="key-publications"
            />
          )}
          <Select
            label="Expires"
            data={LIFETIMES}
            value={days}
            onChange={(value) => setDays(value ?? "")}
            allowDeselect={false}
            data-testid="key-lifetime"
          />
          {creating.error !== null && <ProblemPanel error={creating.error} />}
          <Group justify="flex-end" gap="sm">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={creating.isPending} disabled={name.trim() === ""} data-testid="create-key">
              Create
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}

function CreatedKey({ name, text, onClose }: { name: string; text: string; onClose: () => void }) {
  return (
    // A click next to the dialog would lose the key.
    <Modal
      opened
      onClose={onClose}
      title={`API key ${name} created`}
      closeOnClickOutside={false}
      transitionProps={{ duration: 0 }}
    >
      <Stack gap="sm" data-testid="created-key">
        <Text size="sm">Copy the key now. It is not stored, so you cannot see it again.</Text>
        <Code block className={classes["wrap"]} data-testid="key-text">
          {text}
        </Code>
        <Group justify="flex-end" gap="sm">
          <CopyTextButton text={text} label="Copy" size="sm" testid="copy-key" />
          <Button onClick={onClose} data-testid="close-key">
            Done
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
