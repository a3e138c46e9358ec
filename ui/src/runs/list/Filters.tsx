/** The filters of the run list. They are kept in the URL, so the back button undoes them. */

import { CloseButton, Group, Select, Switch, TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Search } from "lucide-react";
import { useEffect, useRef, useState } from "react";

import { api, body } from "../../api/client.ts";
import { runsRoute } from "../../app/router.tsx";
import { useShortcut } from "../../app/shortcuts.ts";
import { appearanceOf } from "../../app/StatusBadge.tsx";
import { StatusToggle } from "../../app/StatusToggle.tsx";
import { LabelFilter } from "./LabelFilter.tsx";
import classes from "./list.module.css";
import { type RunsSearch, STATUSES, statusesOf } from "./search.ts";
import { TimeRange } from "./TimeRange.tsx";

const TYPING_MS = 200;
const MOST_TEXT = 200;
const MOST_NAMES = 1_000;

export function useFilter() {
  const navigate = useNavigate({ from: "/runs" });
  return (part: { readonly [Name in keyof RunsSearch]: RunsSearch[Name] | undefined }, typing = false) =>
    void navigate({
      search: (now: RunsSearch) =>
        Object.fromEntries(
          Object.entries({ ...now, ...part }).filter(([, value]) => value !== undefined),
        ) as RunsSearch,
      // Typing does not add a history entry per letter.
      replace: typing,
    });
}

export function Filters() {
  const search = runsRoute.useSearch();
  const filter = useFilter();
  return (
    <Group gap="xs" role="search" aria-label="Runs" className={classes["filters"]}>
      <SearchField given={search.q ?? ""} onText={(q) => filter({ q: q === "" ? undefined : q }, true)} />
      <NameSelect
        what="workflow"
        value={search.workflow}
        onChange={(workflow) => filter({ workflow })}
        load={() => body(api.GET("/api/v1/workflows", { params: { query: { limit: MOST_NAMES } } }))}
      />
      <NameSelect
        what="agent"
        value={search.agent}
        onChange={(agent) => filter({ agent })}
        load={() => body(api.GET("/api/v1/agents", { params: { query: { limit: MOST_NAMES } } }))}
      />
      <LabelFilter labels={search.label ?? []} onChange={(label) => filter({ label })} />
      <TimeRange search={search} filter={filter} />
      <Statuses
        chosen={statusesOf(search.status)}
        onChange={(chosen) => filter({ status: chosen.length === 0 ? undefined : chosen.join(",") })}
      />
      {search.parent === undefined ? (
        <Switch
          size="xs"
          label="Child runs"
          checked={search.children === true}
          onChange={(event) => filter({ children: event.currentTarget.checked ? true : undefined })}
          data-testid="filter-children"
        />
      ) : (
        <span className={classes["parent"]} data-testid="filter-parent">
          Children of {search.parent.slice(-8)}
          <CloseButton size="xs" aria-label="Remove this filter" onClick={() => filter({ parent: undefined })} />
        </span>
      )}
    </Group>
  );
}

/** The typed text is written to the URL after a short delay. */
function SearchField({ given, onText }: { given: string; onText: (text: string) => void }) {
  const [text, setText] = useState(given);
  const sent = useRef(given);
  const field = useRef<HTMLInputElement>(null);
  useShortcut("/", "Search runs", () => field.current?.select());
  const look = useDebouncedCallback((next: string) => {
    sent.current = next;
    onText(next);
  }, TYPING_MS);
  useEffect(() => {
    // The URL was changed elsewhere: by a view or the back button.
    if (given !== sent.current) {
      sent.current = given;
      setText(given);
    }
  }, [given]);
  return (
    <TextInput
      type="search"
      ref={field}
      aria-label="Search runs by the beginning of the ID, part of the workflow name, or the correlation ID"
      placeholder="ID, workflow or correlation ID"
      leftSection={<Search size={16} aria-hidden />}
      value={text}
      onChange={(event) => {
        setText(event.currentTarget.value);
        look(event.currentTarget.value);
      }}
      onKeyDown={(event) => {
        if (event.key === "Escape") event.currentTarget.blur();
      }}
      maxLength={MOST_TEXT}
      className={classes["search"]}
      data-testid="search"
      data-search
    />
  );
}

function Statuses({ chosen, onChange }: { chosen: readonly string[]; onChange: (chosen: string[]) => void }) {
  return (
    <div className={classes["statuses"]} role="group" aria-label="Filter by status">
      {STATUSES.map((status) => {
        const isChosen = chosen.includes(status);
        return (
          <StatusToggle
            key={status}
            status={status}
            isPressed={isChosen}
            onPress={() =>
              onChange(
                isChosen
                  ? chosen.filter((each) => each !== status)
                  : STATUSES.filter((each) => each === status || chosen.includes(each)),
              )
            }
            testId={`filter-${status.toLowerCase()}`}
          >
            {appearanceOf(status).word}
          </StatusToggle>
        );
      })}
    </div>
  );
}

/** A select field for names, which are loaded when it is opened. */
function NameSelect({
  what,
  value,
  onChange,
  load,
}: {
  what: "workflow" | "agent";
  value: string | undefined;
  onChange: (value: string | undefined) => void;
  load: () => Promise<{ items: readonly { name: string }[] }>;
}) {
  const [opened, setOpened] = useState(false);
  const query = useQuery({ queryKey: ["names", what], queryFn: load, enabled: opened, staleTime: 10_000 });
  const names = new Set(query.data?.items.map((each) => each.name));
  if (value !== undefined) names.add(value);
  return (
    <Select
      aria-label={`Filter by ${what}`}
      placeholder={`Any ${what}`}
      searchable
      clearable
      clearButtonProps={{ "aria-label": `Any ${what}` }}
      data={[...names]}
      limit={100}
      value={value ?? null}
      onChange={(next) => onChange(next ?? undefined)}
      onDropdownOpen={() => setOpened(true)}
      nothingFoundMessage={
        query.isPending ? "Loading…" : query.isError ? "The names could not be loaded." : `No matching ${what}s`
      }
      className={classes["select"]}
      data-testid={`filter-${what}`}
    />
  );
}
