/** The audit log, newest entries first. */

import { Button, Group, Select, Stack, Table, Text, TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import { AnchorLink } from "../app/links.tsx";
import { Loading } from "../app/Loading.tsx";
import { Timestamp } from "../app/Timestamp.tsx";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { systemRoute, type SystemSearch } from "../app/router.tsx";
import { type AuditEntry, type AuditFilter, auditQuery } from "./queries.ts";
import classes from "./system.module.css";
import { actionLabel, detailsOf, KINDS } from "./labels.ts";

const TYPING_MS = 250;

export function Audit() {
  const { who, kind, subject } = systemRoute.useSearch();
  const filter: AuditFilter = {
    ...(who === undefined ? {} : { who }),
    ...(kind === undefined ? {} : { kind }),
    ...(subject === undefined ? {} : { subject }),
  };
  const query = useInfiniteQuery(auditQuery(filter));
  const entries = query.data?.pages.flatMap((page) => page.items) ?? [];
  const isFiltered = Object.keys(filter).length > 0;
  return (
    <Stack gap="sm">
      <Filters />
      {query.error !== null && <ProblemPanel error={query.error} again={() => void query.refetch()} />}
      {query.isPending && <Loading />}
      {query.isSuccess && entries.length === 0 && (
        <Group gap="xs" data-testid="no-audit">
          <Text size="sm">{isFiltered ? "No matching entries." : "No entries yet."}</Text>
          {isFiltered && (
            <AnchorLink to="/system" search={{ tab: "audit" }} fz="sm">
              Clear filters
            </AnchorLink>
          )}
        </Group>
      )}
      {entries.length > 0 && (
        <Table.ScrollContainer minWidth={0}>
          <Table verticalSpacing={6} data-testid="audit">
            <Table.Thead>
              <Table.Tr>
                <Table.Th className={classes["when"]}>Time</Table.Th>
                <Table.Th visibleFrom="sm">API key</Table.Th>
                <Table.Th>Action</Table.Th>
                <Table.Th visibleFrom="sm">Details</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {entries.map((entry) => (
                <Entry key={entry.id} entry={entry} />
              ))}
            </Table.Tbody>
          </Table>
        </Table.ScrollContainer>
      )}
      {query.hasNextPage && (
        <Button
          variant="default"
          loading={query.isFetchingNextPage}
          onClick={() => void query.fetchNextPage()}
          data-testid="older"
        >
          Load older entries
        </Button>
      )}
    </Stack>
  );
}

function Entry({ entry }: { entry: AuditEntry }) {
  const details = detailsOf(entry).join(" · ");
  return (
    <Table.Tr data-testid="audit-entry" data-kind={entry.kind} data-action={entry.action}>
      <Table.Td className={classes["when"]}>
        <Timestamp at={entry.at} />
      </Table.Td>
      <Table.Td visibleFrom="sm" className={classes["wrap"]}>
        <Text span size="sm" c="dimmed">
          <Who entry={entry} />
        </Text>
      </Table.Td>
      <Table.Td className={classes["wrap"]}>
        {actionLabel(entry)} <Subject entry={entry} />
        {/* On a phone these replace the columns. */}
        <Text hiddenFrom="sm" size="xs" c="dimmed">
          by <Who entry={entry} />
          {details !== "" && ` · ${details}`}
        </Text>
      </Table.Td>
      <Table.Td visibleFrom="sm" className={classes["wrap"]}>
        <Text size="xs" c="dimmed">
          {details}
        </Text>
      </Table.Td>
    </Table.Tr>
  );
}

function Who({ entry: { who } }: { entry: AuditEntry }) {
  if (who === null)
    return (
      <span className={classes["word"]} title="The server did not require an API key">
        anonymous
      </span>
    );
  return (
    <AnchorLink to="/system" search={{ tab: "audit", who }} inherit underline="always">
      {who}
    </AnchorLink>
  );
}

function Subject({ entry: { kind, subject } }: { entry: AuditEntry }) {
  if (kind === "run") {
    return (
      <AnchorLink to="/runs/$run" params={{ run: subject }} search={{}} fz="sm" underline="always">
        {subject}
      </AnchorLink>
    );
  }
  if (kind === "workflow") {
    return (
      <AnchorLink to="/workflows/$workflow" params={{ workflow: subject }} search={{}} fz="sm" underline="always">
        {subject}
      </AnchorLink>
    );
  }
  if (kind === "agent" || kind === "migration") {
    return (
      <AnchorLink to="/agents/$agent" params={{ agent: subject }} search={{}} fz="sm" underline="always">
        {subject}
      </AnchorLink>
    );
  }
  return <strong>{subject}</strong>;
}

/** The filters are kept in the URL. */
function Filters() {
  const given = systemRoute.useSearch();
  const navigate = useNavigate({ from: "/system" });
  const change = (name: keyof SystemSearch, value: string | null) =>
    void navigate({
      search: ({ [name]: _, ...rest }: SystemSearch) => ({
        ...rest,
        ...(value === null || value === "" ? {} : { [name]: value }),
      }),
      replace: true,
    });
  return (
    <Group gap="xs">
      <SearchField
        key={`who ${given.who ?? ""}`}
        label="Filter by API key"
        placeholder="API key"
        testid="audit-who"
        value={given.who}
        onChange={(text) => change("who", text)}
      />
      <Select
        aria-label="Filter by type"
        placeholder="Any type"
        clearable
        clearButtonProps={{ "aria-label": "Any type" }}
        data={Object.entries(KINDS).map(([value, label]) => ({ value, label }))}
        value={given.kind ?? null}
        onChange={(kind) => change("kind", kind)}
        w={160}
        data-testid="audit-kind"
      />
      <SearchField
        key={`subject ${given.subject ?? ""}`}
        label="Filter by the name or ID of a run, agent, workflow, key or secret"
        placeholder="Name or ID"
        testid="audit-subject"
        value={given.subject}
        onChange={(text) => change("subject", text)}
      />
    </Group>
  );
}

function SearchField({
  label,
  placeholder,
  testid,
  value,
  onChange,
}: {
  label: string;
  placeholder: string;
  testid: string;
  value: string | undefined;
  onChange: (text: string) => void;
}) {
  const [text, setText] = useState(value ?? "");
  const tell = useDebouncedCallback(onChange, TYPING_MS);
  return (
    <TextInput
      type="search"
      aria-label={label}
      placeholder={placeholder}
      value={text}
      onChange={(event) => {
        setText(event.currentTarget.value);
        tell(event.currentTarget.value);
      }}
      maxLength={255}
      w={{ base: "100%", xs: 180 }}
      data-testid={testid}
    />
  );
}
