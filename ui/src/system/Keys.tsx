/** The API keys, with the actions create and revoke. Only admins can see them. */

import { Badge, Button, Group, Modal, Stack, Table, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useInfiniteQuery } from "@tanstack/react-query";
import { KeyRound, Trash2 } from "lucide-react";
import { useState } from "react";

import { Loading } from "../app/Loading.tsx";
import { NotAllowed } from "../app/NotAllowed.tsx";
import { usePermission } from "../app/permissions.ts";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { absoluteTime, Timestamp, useNow, useTimeZone } from "../app/Timestamp.tsx";
import { toast } from "../app/toasts.ts";
import { ActionButton } from "../runs/actions/ActionButton.tsx";
import { NewKeyDialog } from "./NewKeyDialog.tsx";
import { type ApiKey, keysQuery, useRevokeKey } from "./queries.ts";
import classes from "./system.module.css";

export function Keys() {
  const may = usePermission("admin");
  const query = useInfiniteQuery({ ...keysQuery, enabled: may.allowed });
  const [creating, dialog] = useDisclosure();
  const [revoked, setRevoked] = useState<ApiKey | null>(null);
  const keys = query.data?.pages.flatMap((page) => page.items) ?? [];
  if (!may.allowed) return <NotAllowed may={may} title="Only admins can manage API keys" />;
  return (
    <Stack gap="md">
      <Group>
        <ActionButton icon={KeyRound} refused={null} onPress={dialog.open} testId="new-key">
          New API key
        </ActionButton>
      </Group>
      {query.error !== null && <ProblemPanel error={query.error} again={() => void query.refetch()} />}
      {query.isPending && <Loading />}
      {query.isSuccess && keys.length === 0 && (
        <Text size="sm" data-testid="no-keys">
          No API keys. Without keys, only this machine can use Trunkline.
        </Text>
      )}
      {keys.length > 0 && <KeyTable keys={keys} onRevoke={setRevoked} />}
      {query.hasNextPage && (
        <Button variant="default" loading={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
          Load more API keys
        </Button>
      )}
      {creating && <NewKeyDialog onClose={dialog.close} />}
      {revoked !== null && <RevokeDialog apiKey={revoked} onClose={() => setRevoked(null)} />}
    </Stack>
  );
}

function KeyTable({ keys, onRevoke }: { keys: readonly ApiKey[]; onRevoke: (key: ApiKey) => void }) {
  return (
    <Table.ScrollContainer minWidth={0}>
      <Table verticalSpacing={6} data-testid="keys">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Name</Table.Th>
            <Table.Th visibleFrom="xs">Role</Table.Th>
            <Table.Th>State</Table.Th>
            <Table.Th visibleFrom="sm">Last used</Table.Th>
            <Table.Th visibleFrom="sm">Expires</Table.Th>
            <Table.Th>
              <span className={classes["word"]}>Action</span>
            </Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {keys.map((key) => (
            <KeyRow key={key.id} apiKey={key} onRevoke={onRevoke} />
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

const STATE_COLORS = { Active: "green", Expired: "red", Revoked: "gray" } as const;

function KeyRow({ apiKey, onRevoke }: { apiKey: ApiKey; onRevoke: (key: ApiKey) => void }) {
  const now = useNow();
  const [zone] = useTimeZone();
  const end = apiKey.expires_at === null ? null : Date.parse(apiKey.expires_at);
  const state = apiKey.revoked_at !== null ? "Revoked" : end !== null && end <= now ? "Expired" : "Active";
  return (
    <Table.Tr data-testid="key-row" data-name={apiKey.name} data-state={state}>
      <Table.Td className={classes["wrap"]}>{apiKey.name}</Table.Td>
      <Table.Td visibleFrom="xs">{apiKey.role}</Table.Td>
      <Table.Td>
        <Badge variant="outline" color={STATE_COLORS[state]} tt="none" c="var(--mantine-color-text)">
          {state}
        </Badge>
      </Table.Td>
      <Table.Td visibleFrom="sm" className={classes["when"]}>
        {apiKey.last_used_at === null ? "Never" : <Timestamp at={apiKey.last_used_at} />}
      </Table.Td>
      <Table.Td visibleFrom="sm" className={classes["when"]}>
        {end === null ? "Never" : absoluteTime(end, zone)}
      </Table.Td>
      <Table.Td>
        {apiKey.revoked_at === null && (
          <ActionButton icon={Trash2} refused={null} onPress={() => onRevoke(apiKey)} testId={`revoke-${apiKey.name}`}>
            Revoke
          </ActionButton>
        )}
      </Table.Td>
    </Table.Tr>
  );
}

function RevokeDialog({ apiKey, onClose }: { apiKey: ApiKey; onClose: () => void }) {
  const revoking = useRevokeKey();
  const go = () =>
    revoking.mutate(apiKey.id, {
      onSuccess: () => {
        onClose();
        toast("done", `API key ${apiKey.name} revoked.`);
      },
    });
  return (
    <Modal opened onClose={onClose} title={`Revoke the API key ${apiKey.name}?`} transitionProps={{ duration: 0 }}>
      <Stack gap="sm" data-testid="revoke-dialog">
        <Text size="sm">Clients that use it are rejected within two seconds. You cannot undo this.</Text>
        {revoking.error !== null && <ProblemPanel error={revoking.error} />}
        <Group justify="flex-end" gap="sm">
          <Button variant="default" onClick={onClose} data-autofocus>
            Cancel
          </Button>
          <Button color="red.9" loading={revoking.isPending} onClick={go} data-testid="confirm-revoke">
            Revoke
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
