/** The inbox: the steps that wait for a person, oldest first. */

import { Button, Code, Group, SegmentedControl, Stack, Text, Title, UnstyledButton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { ArrowLeft, CircleCheck } from "lucide-react";

import { Loading } from "../app/Loading.tsx";
import { Timestamp } from "../app/Timestamp.tsx";
import { escapeBidi } from "../app/bidi.ts";
import { callerQuery } from "../app/permissions.ts";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { inboxRoute } from "../app/router.tsx";
import classes from "./InboxPage.module.css";
import { KINDS } from "./itemKinds.ts";
import { InboxItemDetail } from "./InboxItemDetail.tsx";
import { useInboxItems, type InboxItem, type Kind, type Whose } from "./queries.ts";

const WHOSE_FILTERS = [
  { value: "all", label: "Everyone" },
  { value: "mine", label: "Mine" },
  { value: "unassigned", label: "Unassigned" },
  { value: "overdue", label: "Overdue" },
];
const FILTERS = [
  { value: "all", label: "All" },
  ...(["input", "auth", "person", "outcome", "compensation"] as const).map((kind) => ({
    value: kind,
    label: KINDS[kind].name,
  })),
];

const NO_ITEMS: Readonly<Record<Whose, string>> = {
  mine: "No items are assigned to you or to your groups.",
  unassigned: "All items are assigned or claimed.",
  overdue: "No items are overdue.",
};

// The list of runs shows as many characters of the id.
const TAIL = 12;

export function InboxPage() {
  const { item, kind, whose } = inboxRoute.useSearch();
  const navigate = useNavigate({ from: "/inbox" });
  const waiting = useInboxItems(kind, whose);
  const caller = useQuery(callerQuery).data;
  const filters = {
    ...(kind === undefined ? {} : { kind }),
    ...(whose === undefined ? {} : { whose }),
  };
  // Without API keys, nobody knows who asks.
  const whoseFilters = WHOSE_FILTERS.filter(({ value }) => value !== "mine" || (caller?.name ?? null) !== null);
  const items = waiting.data?.pages.flatMap((page) => page.items) ?? [];
  const select = (next: string | undefined, replace = false) =>
    void navigate({
      search: { ...filters, ...(next === undefined ? {} : { item: next }) },
      replace,
    });
  const chosen = item ?? (items.length === 1 ? items[0]!.id : undefined);
  return (
    <Stack gap="sm">
      <Group justify="space-between">
        <Title order={1} size="h3">
          Inbox
        </Title>
        <Group gap="xs">
          <SegmentedControl
            size="xs"
            aria-label="Filter by person"
            data={whoseFilters}
            value={whose ?? "all"}
            onChange={(next) =>
              void navigate({
                search: {
                  ...(kind === undefined ? {} : { kind }),
                  ...(next === "all" ? {} : { whose: next as Whose }),
                },
              })
            }
            data-testid="inbox-whose"
          />
          <SegmentedControl
            size="xs"
            aria-label="Filter by type"
            data={FILTERS}
            value={kind ?? "all"}
            onChange={(next) =>
              void navigate({
                search: {
                  ...(whose === undefined ? {} : { whose }),
                  ...(next === "all" ? {} : { kind: next as Kind }),
                },
              })
            }
            data-testid="inbox-kind"
          />
        </Group>
      </Group>
      {waiting.error !== null && <ProblemPanel error={waiting.error} again={() => void waiting.refetch()} />}
      {waiting.isPending && <Loading />}
      {waiting.isSuccess && items.length === 0 && item === undefined && <EmptyInbox kind={kind} whose={whose} />}
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
        {item.text !== item.title && (
          <Text size="sm" lineClamp={2}>
            {item.text}
          </Text>
        )}
        <Text size="xs" c="dimmed" truncate>
          {escapeBidi(`${item.workflow.name} · ${item.step}`)}
        </Text>
        <Text size="xs" c="dimmed" truncate>
          <Text span inherit ff="monospace" title={item.run_id}>
            …{item.run_id.slice(-TAIL)}
          </Text>{" "}
          · <Timestamp at={item.since} />
        </Text>
        {whoseText(item) !== null && (
          <Text size="xs" truncate data-testid="inbox-item-whose">
            {escapeBidi(whoseText(item)!)}
          </Text>
        )}
      </div>
    </UnstyledButton>
  );
}

function whoseText(item: InboxItem): string | null {
  const due = item.due != null && Date.parse(item.due) < Date.now() ? "Overdue" : null;
  const people =
    item.claimed_by != null
      ? `Claimed by ${item.claimed_by}`
      : item.assignees !== undefined && item.assignees.length > 0
        ? `For ${item.assignees.join(", ")}`
        : null;
  const said = [due, people].filter((part) => part !== null);
  return said.length === 0 ? null : said.join(" · ");
}

function EmptyInbox({ kind, whose }: { kind: Kind | undefined; whose: Whose | undefined }) {
  return (
    <Stack gap="xs" align="flex-start" data-testid="inbox-empty">
      <Group gap="xs">
        <CircleCheck size={20} aria-hidden color="var(--status-completed)" />
        <Text fw={600}>
          {whose !== undefined
            ? NO_ITEMS[whose]
            : kind === undefined
              ? "No steps are waiting for a person."
              : `No ${KINDS[kind].name.toLowerCase()}.`}
        </Text>
      </Group>
      <Text size="sm" c="dimmed">
        Tasks, questions from agents, login requests and calls with an unknown outcome appear here. The header of every
        page shows their number. In a terminal: <Code>trunkline inbox list</Code>
      </Text>
    </Stack>
  );
}
