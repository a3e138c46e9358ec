/** The events that have arrived, newest first, and a form to send one. */

import { Button, Code, Group, Stack, Table, Text, TextInput, Title } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { ChevronDown, ChevronRight, Search, Send } from "lucide-react";
import { useState } from "react";

import { escapeBidi } from "../app/bidi.ts";
import { ColumnTable } from "../app/ColumnTable.tsx";
import { Loading } from "../app/Loading.tsx";
import { usePermission } from "../app/permissions.ts";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { eventsRoute, type EventsSearch } from "../app/router.tsx";
import { Timestamp } from "../app/Timestamp.tsx";
import { ActionButton } from "../runs/actions/ActionButton.tsx";
import { eventsQuery, type ReceivedEvent } from "./queries.ts";
import { SendEventDialog } from "./SendEventDialog.tsx";

const TYPING_MS = 300;

export function EventsPage() {
  const search = eventsRoute.useSearch();
  const may = usePermission("operator");
  const [sending, setSending] = useState(false);
  // A key is looked up together with its type.
  const query = useInfiniteQuery(
    eventsQuery(
      search.type === undefined ? {} : { type: search.type, ...(search.key === undefined ? {} : { key: search.key }) },
    ),
  );
  const events = query.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <Stack gap="sm">
      <Group justify="space-between">
        <Title order={1} size="h3">
          Events
        </Title>
        <ActionButton
          icon={Send}
          refused={may.allowed ? null : may.reason}
          filled
          size="sm"
          onPress={() => setSending(true)}
          testId="send-event"
        >
          Send an event
        </ActionButton>
      </Group>
      <Filters />
      {query.error !== null && <ProblemPanel error={query.error} again={() => void query.refetch()} />}
      {query.isPending && <Loading />}
      {query.isSuccess && events.length === 0 && (
        <Text data-testid="no-events">
          No {search.type === undefined ? "events have arrived yet" : "matching events"}. In a terminal:{" "}
          <Code>trunkline events send TYPE</Code>
        </Text>
      )}
      {events.length > 0 && (
        <ColumnTable columns={["Arrived", "Type", "Key", "Source", "Data"]} testid="events">
          {events.map((event) => (
            <EventRow key={`${event.source} ${event.id}`} event={event} />
          ))}
        </ColumnTable>
      )}
      {query.hasNextPage && (
        <Button variant="default" loading={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
          Load older events
        </Button>
      )}
      {sending && <SendEventDialog onClose={() => setSending(false)} />}
    </Stack>
  );
}

/** The filters are kept in the URL. */
function Filters() {
  const given = eventsRoute.useSearch();
  const navigate = useNavigate({ from: "/events" });
  const [type, setType] = useState(given.type ?? "");
  const [key, setKey] = useState(given.key ?? "");
  const change = useDebouncedCallback(
    (part: EventsSearch) => void navigate({ search: part, replace: true }),
    TYPING_MS,
  );
  const look = (wantedType: string, wantedKey: string) =>
    change({
      ...(wantedType === "" ? {} : { type: wantedType }),
      ...(wantedType === "" || wantedKey === "" ? {} : { key: wantedKey }),
    });
  return (
    <Group gap="xs">
      <TextInput
        type="search"
        aria-label="Filter by type"
        placeholder="Type, such as payment.received"
        leftSection={<Search size={16} aria-hidden />}
        value={type}
        onChange={(event) => {
          setType(event.currentTarget.value);
          look(event.currentTarget.value, key);
        }}
        maxLength={255}
        w={{ base: "100%", xs: 280 }}
        data-testid="event-type"
        data-search
      />
      <TextInput
        type="search"
        aria-label="Filter by key; requires a type"
        placeholder="Key"
        value={key}
        disabled={type === ""}
        onChange={(event) => {
          setKey(event.currentTarget.value);
          look(type, event.currentTarget.value);
        }}
        maxLength={255}
        w={{ base: "100%", xs: 180 }}
        data-testid="event-key"
      />
    </Group>
  );
}

function EventRow({ event }: { event: ReceivedEvent }) {
  const [open, setOpen] = useState(false);
  const Icon = open ? ChevronDown : ChevronRight;
  return (
    <>
      <Table.Tr data-testid="event-row">
        <Table.Td>
          <Timestamp at={event.at} />
        </Table.Td>
        <Table.Td>{escapeBidi(event.type)}</Table.Td>
        <Table.Td>{escapeBidi(event.key ?? "–")}</Table.Td>
        <Table.Td>{escapeBidi(event.source)}</Table.Td>
        <Table.Td>
          <Button
            size="compact-xs"
            variant="default"
            leftSection={<Icon size={14} aria-hidden />}
            aria-expanded={open}
            aria-label={`${open ? "Hide" : "Show"} the data of event ${event.id}`}
            onClick={() => setOpen(!open)}
          >
            {open ? "Hide" : "Show"}
          </Button>
        </Table.Td>
      </Table.Tr>
      {open && (
        <Table.Tr>
          <Table.Td colSpan={5}>
            <Text size="xs" c="dimmed">
              ID {escapeBidi(event.id)}
            </Text>
            <Code block tabIndex={0} data-testid="event-data">
              {JSON.stringify(event.data, null, 2)}
            </Code>
          </Table.Td>
        </Table.Tr>
      )}
    </>
  );
}
