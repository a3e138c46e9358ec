/** When the runs were created: up to now, or between two times as the reader's clock, or UTC, shows them. */

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
          aria-label="Only runs created in this time"
          placeholder="Any time"
          clearable
          clearButtonProps={{ "aria-label": "Any time" }}
          data={[
            ...Object.entries(SPANS).map(([value, { name }]) => ({ value, label: name })),
            { value: BETWEEN, label: "Between…" },
          ]}
          value={search.last ?? (isBetween || opened ? BETWEEN : null)}
          // Chosen again, it is to be changed.
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
          error={isWrong ? "This is not after the time above." : undefined}
          data-testid="until"
        />
        <Group justify="space-between" gap="xs">
          <Text size="xs" c="dimmed">
            {zone === "utc" ? "Times in UTC" : "Times as on this machine"}
          </Text>
          <Button type="submit" size="xs" disabled={isWrong} data-testid="apply-between">
            Apply
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

/** As a field for date and time has it: `2026-03-01T12:00:00`, without a zone. */
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
