/** The keyboard shortcuts that work on the current page. */

import { Kbd, Modal, Stack, Table } from "@mantine/core";
import { Fragment } from "react";

import { useShortcuts, type Shortcut } from "./shortcuts.ts";

export const MODIFIER = /Mac|iPhone|iPad/.test(navigator.userAgent) ? "⌘" : "Ctrl";

export function ShortcutList({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  const shortcuts = useShortcuts();
  return (
    <Modal opened={opened} onClose={onClose} title="Keyboard shortcuts">
      <Stack gap="md" data-testid="shortcuts">
        <Part name="On this page" shortcuts={shortcuts.filter(({ scope }) => scope === "page")} />
        <Part name="All pages" shortcuts={shortcuts.filter(({ scope }) => scope === "everywhere")} />
      </Stack>
    </Modal>
  );
}

function Part({ name, shortcuts }: { name: string; shortcuts: readonly Shortcut[] }) {
  if (shortcuts.length === 0) return null;
  return (
    <Table captionSide="top" verticalSpacing={4}>
      <Table.Caption ta="start" fw={600}>
        {name}
      </Table.Caption>
      <Table.Thead>
        <Table.Tr>
          <Table.Th>Keys</Table.Th>
          <Table.Th>Action</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {shortcuts.map(({ keys, description }) => (
          <Table.Tr key={keys} data-testid="shortcut">
            <Table.Td w={140}>
              <Keys keys={keys} />
            </Table.Td>
            <Table.Td>{description}</Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

export function Keys({ keys }: { keys: string }) {
  return keys.split(" ").map((chord, place) => (
    <Fragment key={place}>
      {place > 0 && " then "}
      {chord.split("+").map((key, part) => (
        <Fragment key={part}>
          {part > 0 && " + "}
          <Kbd>{key === "mod" ? MODIFIER : key.length === 1 && chord.includes("+") ? key.toUpperCase() : key}</Kbd>
        </Fragment>
      ))}
    </Fragment>
  ));
}
