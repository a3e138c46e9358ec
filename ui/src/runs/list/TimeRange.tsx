/** The filter by creation time: a relative range, or two times in local time or UTC. */

import { Button, Group, Popover, Select, Stack, Text, TextInput } from "@mantine/core";
import { useState } from "react";

import { useTimeZone } from "../../app/Timestamp.tsx";
import classes from "./list.module.css";
import { type RunsSearch, type Span, SPANS } from "./search.ts";

type Filter = (part: { readonly [Name in keyof RunsSearch]: RunsSearch[Name] | undefined }) => void;
type Zone = "local" | "utc";

const BETWEEN = "between";

export function TimeRange({ search, filter }: { search: RunsSearch; filter: Filter }) {
  const [opened, setOpened] = useState(false);
  const isBetween = search.since !== undefined || search.until !== undefined;
  return (
    <Popover
      opened={opened}
      onChange={setOpened}
      position="bottom-start"
      trapFocus
      withinPortal
      shadow="md"
      transitionProps={{ duration: 0 }}
    >
      <Popover.Target>
        <Select
          aria-label="Filter by creation time"
          placeholder="Any time"
          clearable
          clearButtonProps={{ "aria-label": "Any time" }}
          data={[
            ...Object.entries(SPANS).map(([value, { name }]) => ({ value, label: name })),
            { value: BETWEEN, label: "Custom range…" },
          ]}
          value={search.last ?? (isBetween || opened ? BETWEEN : null)}
          // Selecting it again opens the fields.
          allowDeselect={false}
          onOptionSubmit={(value) => setOpened(value === BETWEEN)}
          onChange={(value) => {
            if (value !== BETWEEN)
              filter({ last: (value ?? undefined) as Span | undefined, since: undefined, until: undefined });
          }}
          onClear={() => setOpened(false)}
          className={classes["select"]}
          data-testid="filter-time"
        />
      </Popover.Target>
      <Popover.Dropdown data-testid="between">
        <Between
          key={`${search.since} ${search.until}`}
          search={search}
          onDone={(since, until) => {
            filter({ last: undefined, since, until });
            setOpened(false);
          }}
        />
      </Popover.Dropdown>
    </Popover>
  );
}

function Between({
  search,
  onDone,
}: {
  search: RunsSearch;
  onDone: (since: string | undefined, until: string | undefined) => void;
}) {
  const [zone] = useTimeZone();
  const [since, setSince] = useState(() => shown(search.since, zone));
  const [until, setUntil] = useState(() => shown(search.until, zone));
  const isWrong = since !== "" && until !== "" && since >= until;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (!isWrong) onDone(meant(since, zone), meant(until, zone));
      }}
    >
      <Stack gap="xs">
        <TextInput
          type="datetime-local"
          step={1}
          label="Created at or after"
          value={since}
          onChange={(event) => setSince(event.currentTarget.value)}
          data-testid="since"
        />
        <TextInput
          type="datetime-local"
          step={1}
          label="Created before"
          value={until}
          onChange={(event) => setUntil(event.currentTarget.value)}
          error={isWrong ? "Must be after the start time." : undefined}
          data-testid="until"
        />
        <Group justify="space-between" gap="xs">
          <Text size="xs" c="dimmed">
            {zone === "utc" ? "Times are in UTC" : "Times are in your time zone"}
          </Text>
          <Button type="submit" size="xs" disabled={isWrong} data-testid="apply-between">
            Apply
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

/** The format of a datetime field: `2026-03-01T12:00:00`, without a zone. */
function shown(instant: string | undefined, zone: Zone): string {
  if (instant === undefined) return "";
  const time = new Date(instant);
  const offset = zone === "utc" ? 0 : time.getTimezoneOffset() * 60_000;
  return new Date(time.getTime() - offset).toISOString().slice(0, 19);
}

function meant(text: string, zone: Zone): string | undefined {
  if (text === "") return undefined;
  return new Date(zone === "utc" ? `${text}Z` : text).toISOString();
}
