/** Who works on an inbox item, and the buttons to claim and to release it. */

import { Button, Group, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Hand } from "lucide-react";

import { callerQuery, usePermission } from "../app/permissions.ts";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { Timestamp } from "../app/Timestamp.tsx";
import { useClaim, type InboxItem } from "./queries.ts";

export function Claim({ item }: { readonly item: InboxItem }) {
  const caller = useQuery(callerQuery).data;
  const may = usePermission("operator");
  const claim = useClaim(item);
  const me = caller?.name ?? null;
  const claimedBy = item.claimed_by ?? null;
  const isMine = claimedBy !== null && claimedBy === me;
  const mayRelease = isMine || (claimedBy !== null && caller?.role === "admin");
  // Without API keys, nobody knows who claims.
  if (claimedBy === null && me === null) return null;
  return (
    <div data-testid="claim">
      <Group gap="sm">
        {claimedBy !== null && (
          <Text size="sm" data-testid="claimed-by">
            {isMine ? "You have claimed this item" : `Claimed by ${claimedBy}`}{" "}
            {item.claimed_at != null && <Timestamp at={item.claimed_at} />}
          </Text>
        )}
        {claimedBy === null && may.allowed && (
          <Button
            size="xs"
            variant="default"
            leftSection={<Hand size={14} aria-hidden />}
            loading={claim.isPending}
            onClick={() => claim.mutate("claim")}
            data-testid="claim-item"
          >
            Claim
          </Button>
        )}
        {mayRelease && (
          <Button
            size="xs"
            variant="default"
            loading={claim.isPending}
            onClick={() => claim.mutate("release")}
            data-testid="release-item"
          >
            Release
          </Button>
        )}
      </Group>
      {claim.error !== null && <ProblemPanel error={claim.error} />}
    </div>
  );
}
