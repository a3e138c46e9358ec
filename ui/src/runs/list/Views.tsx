/** The saved views as tabs. Each is a URL. */

import { ActionIcon, Button, Group, Popover, Text, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { Link } from "@tanstack/react-router";
import { BookmarkPlus, X } from "lucide-react";
import { useState } from "react";

import classes from "./list.module.css";
import { isFiltered, type RunsSearch } from "./search.ts";
import { isSame, MOST_NAME, useViews } from "./views.ts";

export function Views({ search }: { search: RunsSearch }) {
  const { views, save, remove } = useViews();
  const isNew = (isFiltered(search) || search.children === true) && !views.some((view) => isSame(view.search, search));
  return (
    <Group gap={4} className={classes["views"]}>
      <nav aria-label="Views" className={classes["tabs"]}>
        <Tab name="All runs" to={{}} />
        {views.map((view) => (
          <span key={view.name} className={classes["tabWithEnd"]}>
            <Tab name={view.name} to={view.search} />
            <ActionIcon
              variant="subtle"
              color="gray"
              size={20}
              aria-label={`Delete view ${view.name}`}
              onClick={() => remove(view.name)}
              data-testid="delete-view"
            >
              <X size={12} aria-hidden />
            </ActionIcon>
          </span>
        ))}
      </nav>
      {isNew && <SaveView names={views.map((view) => view.name)} onSave={(name) => save({ name, search })} />}
    </Group>
  );
}

function Tab({ name, to }: { name: string; to: RunsSearch }) {
  return (
    <Link
      to="/runs"
      search={to}
      // A view is current only if all filters are the same.
      activeOptions={{ exact: true, includeSearch: true }}
      className={classes["tab"]}
      data-testid="view"
    >
      {name}
    </Link>
  );
}

function SaveView({ names, onSave }: { names: readonly string[]; onSave: (name: string) => void }) {
  const [opened, { open, close }] = useDisclosure();
  const [name, setName] = useState("");
  const given = name.trim();
  return (
    <Popover
      opened={opened}
      onDismiss={close}
      position="bottom-start"
      trapFocus
      // The button stays in view when the list is scrolled, and so does this.
      floatingStrategy="fixed"
      shadow="md"
      transitionProps={{ duration: 0 }}
    >
      <Popover.Target>
        <Button
          size="compact-sm"
          variant="default"
          leftSection={<BookmarkPlus size={14} aria-hidden />}
          onClick={opened ? close : open}
          data-testid="save-view"
        >
          Save view
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            if (given === "") return;
            onSave(given);
            close();
          }}
        >
          <Group gap="xs" align="flex-end" wrap="nowrap">
            <TextInput
              label="View name"
              value={name}
              onChange={(event) => setName(event.currentTarget.value)}
              maxLength={MOST_NAME}
              data-autofocus
              data-testid="view-name"
            />
            <Button type="submit" disabled={given === ""} data-testid="confirm-view">
              {names.includes(given) ? "Replace" : "Save"}
            </Button>
          </Group>
          <Text size="xs" c="dimmed" mt={6}>
            Saves the current filters in this browser.
          </Text>
        </form>
      </Popover.Dropdown>
    </Popover>
  );
}
