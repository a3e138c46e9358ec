/** The bar above the table: the number of runs and the live status, or the actions for the selection. */

import { Button, Group, Text } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { Ban, CircleDot, FilterX, ListChecks, RotateCcw, TimerReset } from "lucide-react";
import { useState } from "react";

import { usePermission } from "../../app/permissions.ts";
import { ActionButton } from "../actions/ActionButton.tsx";
import { BulkDialog } from "./BulkDialog.tsx";
import { MatchingDialog } from "./MatchingDialog.tsx";
import { meant } from "./bulk.ts";
import classes from "./list.module.css";
import { counted } from "./formatCounts.ts";
import { isFiltered, type RunsSearch } from "./search.ts";
import type { Run } from "./useRuns.ts";
import type { Selection } from "./useSelection.ts";

export function RunListBar({
  shown,
  hasMore,
  live,
  fresh,
  onFresh,
  selection,
  search,
}: {
  shown: number;
  hasMore: boolean;
  live: boolean;
  fresh: number;
  onFresh: () => void;
  selection: Selection;
  search: RunsSearch;
}) {
  return (
    <div className={classes["bar"]}>
      {selection.runs.size === 0 ? (
        <>
          <Text size="sm" c="dimmed" data-testid="shown">
            {counted(shown, "run")}
            {hasMore ? " or more" : ""}
          </Text>
          {isFiltered(search) && <ClearFilters />}
          {isFiltered(search) && search.parent === undefined && <ActOnMatching search={search} />}
        </>
      ) : (
        <Chosen selection={selection} />
      )}
      <Group gap="sm" wrap="nowrap" ml="auto">
        {fresh > 0 && (
          <Button size="compact-sm" variant="light" onClick={onFresh} data-testid="new-runs">
            Show {counted(fresh, "new run")}
          </Button>
        )}
        <Live live={live} />
      </Group>
    </div>
  );
}

function ClearFilters() {
  const navigate = useNavigate({ from: "/runs" });
  return (
    <Button
      size="compact-sm"
      variant="default"
      leftSection={<FilterX size={14} aria-hidden />}
      onClick={() => void navigate({ search: {} })}
      data-testid="clear-filters"
    >
      Clear filters
    </Button>
  );
}

function ActOnMatching({ search }: { search: RunsSearch }) {
  const may = usePermission("operator");
  const [opened, setOpened] = useState(false);
  return (
    <>
      <ActionButton
        icon={ListChecks}
        refused={may.allowed ? null : may.reason}
        onPress={() => setOpened(true)}
        testId="act-on-matching"
      >
        Act on all matching…
      </ActionButton>
      {opened && <MatchingDialog search={search} onClose={() => setOpened(false)} />}
    </>
  );
}

function Live({ live }: { live: boolean }) {
  const Icon = live ? CircleDot : TimerReset;
  return (
    <span
      className={classes["live"]}
      role="status"
      title={
        live ? "The list updates immediately." : "Live updates are not available. The list refreshes every few seconds."
      }
      data-testid="live"
      data-live={live}
    >
      <Icon size={14} aria-hidden color={live ? "var(--status-completed)" : "var(--status-waiting)"} />
      {live ? "Live" : "Not live"}
    </span>
  );
}

function Chosen({ selection }: { selection: Selection }) {
  const may = usePermission("operator");
  const [asked, setAsked] = useState<{ wish: "cancel" | "retry"; runs: readonly Run[] } | null>(null);
  const runs = [...selection.runs.values()];
  const why = (wish: "cancel" | "retry") => {
    if (!may.allowed) return may.reason;
    if (meant(wish === "cancel" ? "cancel" : "restart", runs).length > 0) return null;
    return wish === "cancel"
      ? "All selected runs have ended or are being cancelled."
      : "None of the selected runs has ended. Wait for them or cancel them first.";
  };
  return (
    <Group gap="xs" wrap="nowrap" role="group" aria-label="Selected runs">
      <Text size="sm" fw={600} role="status" data-testid="selected">
        {runs.length} selected
      </Text>
      <ActionButton
        icon={Ban}
        refused={why("cancel")}
        onPress={() => setAsked({ wish: "cancel", runs })}
        testId="bulk-cancel"
      >
        Cancel…
      </ActionButton>
      <ActionButton
        icon={RotateCcw}
        refused={why("retry")}
        onPress={() => setAsked({ wish: "retry", runs })}
        testId="bulk-retry"
      >
        Retry…
      </ActionButton>
      <Button size="compact-sm" variant="default" onClick={() => selection.set([])} data-testid="select-none">
        Clear selection
      </Button>
      {asked !== null && (
        <BulkDialog
          wish={asked.wish}
          runs={asked.runs}
          onClose={(left) => {
            setAsked(null);
            if (left !== null) selection.set(left);
          }}
        />
      )}
    </Group>
  );
}
