/** Everything that waits for a person, the oldest first, and the means to answer it. */

import { Button, Code, Group, SegmentedControl, Stack, Text, Title, UnstyledButton } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { ArrowLeft, CircleCheck } from "lucide-react";

import { Loading } from "../app/Loading.tsx";
import { Timestamp } from "../app/Timestamp.tsx";
import { escapeBidi } from "../app/bidi.ts";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { inboxRoute } from "../app/router.tsx";
import classes from "./InboxPage.module.css";
import { KINDS } from "./kinds.ts";
import { Question } from "./Question.tsx";
import { useWaiting, type InboxItem, type Kind } from "./waiting.ts";

const FILTERS = [
  { value: "all", label: "All" },
  ...(["input", "auth", "outcome"] as const).map((kind) => ({ value: kind, label: KINDS[kind].name })),
];

// As much of a run's id as the list of runs always shows.
const TAIL = 12;

export function InboxPage() {
  const { item, kind } = inboxRoute.useSearch();
  const navigate = useNavigate({ from: "/inbox" });
  const waiting = useWaiting(kind);
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
          aria-label="What waits"
          data={FILTERS}
          value={kind ?? "all"}
          onChange={(next) => void navigate({ search: next === "all" ? {} : { kind: next as Kind } })}
          data-testid="inbox-kind"
        />
      </Group>
      {waiting.error !== null && <ProblemPanel error={waiting.error} again={() => void waiting.refetch()} />}
      {waiting.isPending && <Loading />}
      {waiting.isSuccess && items.length === 0 && item === undefined && <NothingWaits kind={kind} />}
      {(items.length > 0 || item !== undefined) && (
        <div className={classes["panes"]} data-chosen={item !== undefined || undefined}>
          <nav aria-label="What waits" className={classes["list"]}>
            {items.map((each) => (
              <Entry key={each.id} item={each} chosen={each.id === chosen} onChoose={() => select(each.id)} />
            ))}
            {waiting.hasNextPage && (
              <Button
                variant="default"
                loading={waiting.isFetchingNextPage}
                onClick={() => void waiting.fetchNextPage()}
              >
                Newer ones
              </Button>
            )}
          </nav>
          <section
            className={classes["detail"]}
            aria-label="The one chosen"
            // From the first letter on it is the one in the address: it stays when it is no longer the only one, or gone.
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
              All that waits
            </Button>
            {chosen === undefined ? (
              <Text c="dimmed" className={classes["nothing"]}>
                Choose one to answer it.
              </Text>
            ) : (
              <Question
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

/** The one to go on with. */
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
          {escapeBidi(title(item.agent))}
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

function NothingWaits({ kind }: { kind: Kind | undefined }) {
  return (
    <Stack gap="xs" align="flex-start" data-testid="inbox-empty">
      <Group gap="xs">
        <CircleCheck size={20} aria-hidden color="var(--status-completed)" />
        <Text fw={600}>
          {kind === undefined ? "Nothing waits for a person." : `No ${KINDS[kind].name.toLowerCase()} wait.`}
        </Text>
      </Group>
      <Text size="sm" c="dimmed">
        When an agent asks something, wants somebody to log in, or nobody knows what became of a call, it is shown here
        and counted at the top of every page. In a shell: <Code>trunkline inbox list</Code>
      </Text>
    </Stack>
  );
}
