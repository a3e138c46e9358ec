/** The text of a trigger, with the findings of the server and the next firings before it is saved. */

import { Button, Code, Group, List, Stack, Text, Textarea, Title } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { CircleCheck, CircleX } from "lucide-react";
import { useState } from "react";

import { Problem } from "../api/problem.ts";
import { AnchorLink, ButtonLink } from "../app/links.tsx";
import { NotAllowed } from "../app/NotAllowed.tsx";
import { usePermission } from "../app/permissions.ts";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { toast } from "../app/toasts.ts";
import { PlannedList } from "./Planned.tsx";
import { previewQuery, useSave } from "./queries.ts";
import classes from "./triggers.module.css";

// Long enough to type a word, short enough to feel immediate.
const TYPING_MS = 250;
const ROWS = 16;

/** `trigger`: the one that is changed; null: it is new. */
export function TriggerEditor({
  heading,
  trigger,
  initial,
}: {
  heading: string;
  trigger: string | null;
  initial: string;
}) {
  const may = usePermission("admin");
  const navigate = useNavigate();
  const [text, setText] = useState(initial);
  const [settled] = useDebouncedValue(text, TYPING_MS);
  const preview = useQuery({ ...previewQuery(settled), placeholderData: keepPreviousData });
  const saving = useSave(trigger);
  const save = () =>
    saving.mutate(text, {
      onSuccess: (saved) => {
        toast("done", `Saved trigger ${saved.name}.`);
        void navigate({ to: "/triggers/$trigger", params: { trigger: saved.name } });
      },
    });
  return (
    <Stack gap="sm">
      <AnchorLink to="/triggers" size="sm">
        All triggers
      </AnchorLink>
      <Title order={1} size="h3" className={classes["name"]}>
        {heading}
      </Title>
      <NotAllowed may={may} title="Only admins can change triggers" />
      <div className={classes["panes"]}>
        <Textarea
          label="Definition, as YAML or JSON"
          className={classes["text"]}
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "s" && (event.ctrlKey || event.metaKey)) {
              event.preventDefault();
              if (may.allowed) save();
            }
          }}
          autosize
          minRows={ROWS}
          spellCheck={false}
          data-testid="trigger-text"
        />
        <Stack gap="xs" component="section" aria-label="Preview">
          <Title order={2} size="h5">
            {preview.error === null ? "Next firings" : "Errors"}
          </Title>
          {preview.error !== null && <Findings error={preview.error} />}
          {preview.error === null && preview.data !== undefined && (
            <>
              <Group gap={6} role="status" data-testid="trigger-valid" c="var(--status-completed)">
                <CircleCheck size={16} aria-hidden />
                <Text size="sm">The trigger is valid.</Text>
              </Group>
              {preview.data.firings.length > 0 ? (
                <PlannedList times={preview.data.firings} />
              ) : (
                <Text size="sm" c="dimmed">
                  This trigger has no schedule.
                </Text>
              )}
            </>
          )}
        </Stack>
      </div>
      {saving.error !== null && saving.error.message !== preview.error?.message && (
        <ProblemPanel error={saving.error} />
      )}
      <Group gap="sm">
        <Button onClick={save} loading={saving.isPending} disabled={!may.allowed} data-testid="save-trigger">
          Save
        </Button>
        {trigger === null ? (
          <ButtonLink variant="default" to="/triggers">
            Cancel
          </ButtonLink>
        ) : (
          <ButtonLink variant="default" to="/triggers/$trigger" params={{ trigger }}>
            Cancel
          </ButtonLink>
        )}
      </Group>
    </Stack>
  );
}

/** What is wrong with the text, or why the server has not checked it. */
function Findings({ error }: { error: Error }) {
  if (!(error instanceof Problem) || error.errors.length === 0) return <ProblemPanel error={error} />;
  return (
    <div role="status">
      <List size="sm" icon={<CircleX size={16} color="var(--status-failed)" aria-hidden />}>
        {error.errors.map((finding, place) => (
          <List.Item key={place}>
            <Code>{finding.path}</Code> {finding.message}
          </List.Item>
        ))}
      </List>
    </div>
  );
}
