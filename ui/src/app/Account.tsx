/** The API key in use and its role, with a button to sign out. Hidden if the server requires no key. */

import { Button, Popover, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { LogOut, UserRound } from "lucide-react";

import { key } from "../api/apiKey.ts";
import { callerQuery, type Role } from "./permissions.ts";
import classes from "./Shell.module.css";

const ROLE_DESCRIPTIONS: Record<Role, string> = {
  caller: "Can call published agents and workflows.",
  viewer: "Can view everything.",
  operator: "Can view everything, start and control runs, and reset and roll back agents.",
  admin: "Can view and change everything.",
};

export function Account() {
  const { data: caller, isSuccess } = useQuery(callerQuery);
  // A rejected key has no caller.
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
          aria-label={`Signed in with API key ${caller.name} (role ${caller.role})`}
          data-testid="account"
        >
          <span className={classes["accountName"]}>{caller.name}</span>
        </Button>
      </Popover.Target>
      <Popover.Dropdown aria-label="API key">
        <Stack gap="xs">
          <Text size="sm" fw={600} data-testid="account-name">
            {caller.name} · {caller.role}
          </Text>
          <Text size="xs">{ROLE_DESCRIPTIONS[caller.role]}</Text>
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
