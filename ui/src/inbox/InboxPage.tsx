/** The inbox: the steps that wait for a person, oldest first. */

import { Button, Code, Group, SegmentedControl, Stack, Text, Title, UnstyledButton } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { ArrowLeft, CircleCheck } from "lucide-react";

import { Loading } from "../app/Loading.tsx";
import { Timestamp } from "../app/Timestamp.tsx";
import { escapeBidi } from "../app/bidi.ts";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { inboxRoute } from "../app/router.tsx";
import classes from "./InboxPage.module.css";
import { KINDS } from "./itemKinds.ts";
import { InboxItemDetail } from "./InboxItemDetail.tsx";
import { useInboxItems, type InboxItem, type Kind } from "./queries.ts";

const FILTERS = [
  { value: "all", label: "All" },
  ...(["input", "auth", "person", "outcome"] as const).map((kind) => ({ value: kind, label: KINDS[kind].name })),
];

// The list of runs shows as many characters of the id.
const TAIL = 12;

export function InboxPage() {
  const { item, kind } = inboxRoute.useSearch();
  const navigate = useNavigate({ from: "/inbox" });
  const waiting = useInboxItems(kind);
  const items = waiting.data?.pages.flatMap((page) => page.items) ?? [];
  const select = (next: string | undefined, replace = false) =>
    void navigate({
      search: { ...(kind === undefined ? {} : { kind }), ...(next === undefined ? {} : { item: next }) },
      replace,
    });
  const chosen = item ?? (items.length === 1 ? items[0]!.id : undefined);
  return (
    <Stack gap="sm">
      <Group justify="space-between">
        <Title order={1} size="h3">
          Inbox
        </Title>
        <SegmentedControl
          size="xs"
          aria-label="Filter by type"
          data={FILTERS}
          value={kind ?? "all"}
          onChange={(next) => void navigate({ search: next === "all" ? {} : { kind: next as Kind } })}
          data-testid="inbox-kind"
        />
      </Group>
      {waiting.error !== null && <ProblemPanel error={waiting.error} again={() => void waiting.refetch()} />}
      {waiting.isPending && <Loading />}
      {waiting.isSuccess && items.length === 0 && item === undefined && <EmptyInbox kind={kind} />}
      {(items.length > 0 || item !== undefined) && (
        <div className={classes["panes"]} data-chosen={item !== undefined || undefined}>
          <nav aria-label="Waiting steps" className={classes["list"]}>
            {items.map((each) => (
              <Entry key={each.id} item={each} chosen={each.id === chosen} onChoose={() => select(each.id)} />
            ))}
            {waiting.hasNextPage && (
              <Button
                variant="default"
                loading={waiting.isFetchingNextPage}
                onClick={() => void waiting.fetchNextPage()}
              >
                Load newer items
              </Button>
            )}
          </nav>
          <section
            className={classes["detail"]}
            aria-label="Selected item"
            // Typing puts the item into the URL: it stays selected when other items arrive or when it is closed.
            onInput={() => {
              if (item === undefined) select(chosen, true);
            }}
          >
            <Button
              className={classes["back"]}
              variant="subtle"
              size="compact-sm"
              leftSection={<ArrowLeft size={14} aria-hidden />}
              onClick={() => select(undefined)}
            >
              All items
            </Button>
            {chosen === undefined ? (
              <Text c="dimmed" className={classes["nothing"]}>
                Select an item to respond.
              </Text>
            ) : (
              <InboxItemDetail
                key={chosen}
                id={chosen}
                where="inbox"
                onDone={() => select(after(items, chosen))}
                onChoose={select}
              />
            )}
          </section>
        </div>
      )}
    </Stack>
  );
}

/** The item to select next. */
function after(items: readonly InboxItem[], done: string): string | undefined {
  const place = items.findIndex((each) => each.id === done);
  const left = items.filter((each) => each.id !== done);
  return left[Math.min(Math.max(place, 0), left.length - 1)]?.id;
}

function Entry({ item, chosen, onChoose }: { item: InboxItem; chosen: boolean; onChoose: () => void }) {
  const { icon: Icon, title } = KINDS[item.kind];
  return (
    <UnstyledButton
      className={classes["entry"]}
      onClick={onChoose}
      aria-current={chosen || undefined}
      data-testid="inbox-item"
      data-kind={item.kind}
    >
      <Icon size={18} aria-hidden className={classes["icon"]} />
      <div className={classes["words"]}>
        <Text size="sm" fw={600} truncate>
          {escapeBidi(item.title ?? title(item.agent))}
        </Text>
        <Text size="sm" lineClamp={2}>
          {item.text}
        </Text>
        <Text size="xs" c="dimmed" truncate>
          {escapeBidi(`${item.workflow.name} · ${item.step}`)}
        </Text>
        <Text size="xs" c="dimmed" truncate>
          <Text span inherit ff="monospace" title={item.run_id}>
            …{item.run_id.slice(-TAIL)}
          </Text>{" "}
          · <Timestamp at={item.since} />
        </Text>
      </div>
    </UnstyledButton>
  );
}

function EmptyInbox({ kind }: { kind: Kind | undefined }) {
  return (
    <Stack gap="xs" align="flex-start" data-testid="inbox-empty">
      <Group gap="xs">
        <CircleCheck size={20} aria-hidden color="var(--status-completed)" />
        <Text fw={600}>
          {kind === undefined ? "No steps are waiting for a person." : `No ${KINDS[kind].name.toLowerCase()}.`}
        </Text>
      </Group>
      <Text size="sm" c="dimmed">
        Tasks, questions from agents, login requests and calls with an unknown outcome appear here. The header of every
        page shows their number. In a terminal: <Code>trunkline inbox list</Code>
      </Text>
    </Stack>
  );
}
