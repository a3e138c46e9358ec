/** Publishes an agent or a workflow over A2A, or ends that. */

import { Stack, Switch } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";

import { usePermission } from "../app/permissions.ts";
import { ProblemPanel } from "../app/ProblemPanel.tsx";

export function PublishSwitch({
  checked,
  description,
  refresh,
  change,
}: {
  checked: boolean;
  description: string;
  /** The first part of the keys of the queries that change with it. */
  refresh: string;
  change: (publish: boolean) => Promise<unknown>;
}) {
  const queries = useQueryClient();
  const may = usePermission("admin");
  const changing = useMutation({
    mutationFn: change,
    onSuccess: () => queries.invalidateQueries({ queryKey: [refresh] }),
  });
  return (
    <Stack gap="xs">
      <Switch
        label="Published over A2A"
        description={may.allowed ? description : may.reason}
        checked={checked}
        disabled={!may.allowed || changing.isPending}
        onChange={(event) => changing.mutate(event.currentTarget.checked)}
        data-testid="publish-switch"
      />
      {changing.error !== null && <ProblemPanel error={changing.error} />}
    </Stack>
  );
}
