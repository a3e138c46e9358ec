/** Who one is, where the server wants a key, and the way out. */

import { Button, Popover, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { LogOut, UserRound } from "lucide-react";

import { key } from "../api/key.ts";
import { callerQuery, type Role } from "./access.ts";
import classes from "./Shell.module.css";

const MAY: Record<Role, string> = {
  viewer: "It may see everything and change nothing.",
  operator: "It may see everything, start and steer runs, and reset and roll back agents.",
  admin: "It may do everything.",
};

export function Account() {
  const { data: caller, isSuccess } = useQuery(callerQuery);
  // A key that is refused by now is nobody's.
  if (!isSuccess || caller.name === null) return null;
  return (
    <Popover position="bottom-end" width={260} transitionProps={{ duration: 0 }} trapFocus returnFocus>
      <Popover.Target>
        <Button
          variant="default"
          size="xs"
          h={34}
          className={classes["account"]}
          leftSection={<UserRound size={15} aria-hidden />}
          aria-label={`Signed in with the key ${caller.name}, which has the role ${caller.role}`}
          data-testid="account"
        >
          <span className={classes["accountName"]}>{caller.name}</span>
        </Button>
      </Popover.Target>
      <Popover.Dropdown aria-label="Your key">
        <Stack gap="xs">
          <Text size="sm" fw={600} data-testid="account-name">
            {caller.name} · {caller.role}
          </Text>
          <Text size="xs">{MAY[caller.role]}</Text>
          <Button
            variant="default"
            size="xs"
            leftSection={<LogOut size={14} aria-hidden />}
            onClick={() => key.write(null)}
            data-testid="sign-out"
          >
            Sign out
          </Button>
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}
