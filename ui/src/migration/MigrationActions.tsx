/** The actions of an agent's migration. Unavailable actions show the reason. */

import { Group } from "@mantine/core";
import {
  BadgeCheck,
  CircleCheck,
  Flag,
  GitCompareArrows,
  Percent,
  ShieldQuestionMark,
  Undo2,
  type LucideIcon,
} from "lucide-react";

import { usePermission, type Role } from "../app/permissions.ts";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { toast } from "../app/toasts.ts";
import { ActionButton } from "../runs/actions/ActionButton.tsx";
import { MigrationDialog } from "./MigrationDialog.tsx";
import { useCheck, type Action, type Status } from "./queries.ts";
import { nextOf, refusalOf } from "./stages.ts";

const BUTTONS: readonly {
  readonly action: Action;
  readonly name: string;
  readonly icon: LucideIcon;
  readonly role: Role;
}[] = [
  { action: "ready", name: "Attest readiness", icon: BadgeCheck, role: "admin" },
  { action: "shadow", name: "Shadow", icon: GitCompareArrows, role: "admin" },
  { action: "canary", name: "Canary", icon: Percent, role: "admin" },
  { action: "cutover", name: "Cut over", icon: CircleCheck, role: "admin" },
  { action: "rollback", name: "Roll back", icon: Undo2, role: "operator" },
  { action: "finish", name: "Finish", icon: Flag, role: "admin" },
];

interface Props {
  readonly status: Status;
  /** The action whose dialog is open. */
  readonly act: Action | "check" | undefined;
  readonly onAct: (action: Action | undefined) => void;
}

export function MigrationActions({ status, act, onAct }: Props) {
  const check = useCheck(status.agent);
  const may: Record<Role, ReturnType<typeof usePermission>> = {
    caller: usePermission("caller"),
    viewer: usePermission("viewer"),
    operator: usePermission("operator"),
    admin: usePermission("admin"),
  };
  const next = nextOf(status)?.action;
  const refused = (action: Action, role: Role) => {
    const allowed = may[role];
    return allowed.allowed ? refusalOf(action, status) : allowed.reason;
  };
  const opened = BUTTONS.find(({ action }) => action === act);
  const isOpen = opened !== undefined && refused(opened.action, opened.role) === null;
  return (
    <>
      <Group gap={6} role="group" aria-label="Actions" data-testid="actions">
        <ActionButton
          icon={ShieldQuestionMark}
          refused={may.operator.allowed ? null : may.operator.reason}
          loading={check.isPending}
          filled={next === "check"}
          onPress={() =>
            check.mutate(undefined, {
              onSuccess: ({ grade }) => toast("done", `Checked ${status.agent}: grade ${grade}`),
            })
          }
          testId="act-check"
        >
          Check
        </ActionButton>
        {BUTTONS.map(({ action, name, icon, role }) => (
          <ActionButton
            key={action}
            icon={icon}
            refused={refused(action, role)}
            filled={next === action}
            onPress={() => onAct(action)}
            testId={`act-${action}`}
          >
            {name}
          </ActionButton>
        ))}
      </Group>
      {check.error !== null && <ProblemPanel error={check.error} />}
      {isOpen && (
        <MigrationDialog key={opened.action} action={opened.action} status={status} onClose={() => onAct(undefined)} />
      )}
    </>
  );
}
