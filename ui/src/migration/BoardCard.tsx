/** One agent on the board: source and target, progress, blockers and the next step. */

import { Text } from "@mantine/core";
import { ArrowRight, CircleAlert, CircleCheck, CircleDashed, CircleX, type LucideIcon } from "lucide-react";
import type { ReactNode } from "react";

import { Timestamp } from "../app/Timestamp.tsx";
import { AnchorLink } from "../app/links.tsx";
import classes from "./migration.module.css";
import type { Entry } from "./queries.ts";
import { compared, nextOf, stageOf, type Next } from "./stages.ts";
import { BLOCKERS, pluralized, percentOf } from "./labels.ts";

export function BoardCard({ entry }: { entry: Entry }) {
  const stage = stageOf(entry);
  const next = nextOf(entry);
  return (
    <li className={classes["card"]} data-testid="card" data-agent={entry.agent}>
      <AnchorLink to="/migration/$agent" params={{ agent: entry.agent }} fw={600} className={classes["cardName"]}>
        {entry.agent}
      </AnchorLink>
      <Dialects entry={entry} />
      <Text size="xs" c="dimmed">
        {entry.workflows.length === 0
          ? "Not used by a workflow"
          : `Used by ${pluralized(entry.workflows.length, "workflow")}`}
      </Text>
      <Checked entry={entry} />
      {stage !== "finished" && <Compared entry={entry} />}
      {(stage === "canary" || stage === "cut_over") && <Called entry={entry} />}
      {stage === "rolled_back" && entry.event !== null && (
        <Text size="xs" className={classes["why"]}>
          {entry.event.who}: {entry.event.why} (<Timestamp at={entry.event.at} />)
        </Text>
      )}
      {entry.migration?.forced === true && (
        <Line icon={CircleAlert} color="var(--status-waiting)">
          Blockers were overridden
        </Line>
      )}
      <Blocked entry={entry} />
      {next !== null && (
        <Text size="xs" className={classes["next"]} data-testid="next">
          <ArrowRight size={13} aria-hidden /> <NextLink agent={entry.agent} next={next} />
        </Text>
      )}
    </li>
  );
}

function NextLink({ agent, next: { text, action, verdict } }: { agent: string; next: Next }) {
  if (action === undefined && verdict === undefined) return <span>{text}</span>;
  const search = { ...(action === undefined ? {} : { act: action }), ...(verdict === undefined ? {} : { verdict }) };
  return (
    <AnchorLink to="/migration/$agent" params={{ agent }} search={search} size="xs" underline="always">
      {text}
    </AnchorLink>
  );
}

function Dialects({ entry }: { entry: Entry }) {
  const target = entry.migration?.target;
  const old = entry.in_use ?? `${entry.protocol}, not detected yet`;
  return (
    <Text size="xs" className={classes["dialects"]}>
      {entry.migration?.stage === "finished" ? (entry.in_use ?? entry.protocol) : old}
      {target != null && entry.migration?.stage !== "finished" && (
        <>
          <ArrowRight size={12} role="img" aria-label="to" />
          {target.protocol}
        </>
      )}
    </Text>
  );
}

function Checked({ entry }: { entry: Entry }) {
  const check = entry.last_check;
  if (check === null)
    return (
      <Line icon={CircleDashed} color="var(--status-pending)">
        Not checked
      </Line>
    );
  return (
    <Line
      icon={check.passed ? CircleCheck : CircleX}
      color={check.passed ? "var(--status-completed)" : "var(--status-failed)"}
    >
      Grade {check.grade}
      {check.passed ? "" : ", failed"}
    </Line>
  );
}

function Compared({ entry }: { entry: Entry }) {
  const { all, differing } = compared(entry);
  if (entry.migration?.stage !== "shadow" && all === 0) return null;
  const share = entry.migration?.stage === "shadow" ? `${entry.migration.percent}% shadowed: ` : "Shadow: ";
  return (
    <Line
      icon={differing === 0 ? CircleCheck : CircleX}
      color={differing === 0 ? "var(--status-completed)" : "var(--status-failed)"}
    >
      {share}
      {differing} of {all} differ{all === 0 ? "" : ` (${percentOf(differing, all)})`}
    </Line>
  );
}

function Called({ entry }: { entry: Entry }) {
  const { calls } = entry;
  return (
    <>
      {entry.migration?.stage === "canary" && <Text size="xs">{entry.migration.percent}% of runs</Text>}
      <table className={classes["calls"]}>
        <thead>
          <tr>
            <th scope="col">Route</th>
            <th scope="col">Calls</th>
            <th scope="col">Failed</th>
          </tr>
        </thead>
        <tbody>
          <tr>
            <th scope="row">source</th>
            <td>{calls.old?.calls ?? 0}</td>
            <td>{calls.old?.failed ?? 0}</td>
          </tr>
          <tr>
            <th scope="row">target</th>
            <td>{calls.new?.calls ?? 0}</td>
            <td>{calls.new?.failed ?? 0}</td>
          </tr>
        </tbody>
      </table>
    </>
  );
}

function Blocked({ entry }: { entry: Entry }) {
  if (entry.blockers.length === 0) return null;
  return (
    <ul className={classes["blockers"]} aria-label="Blockers">
      {entry.blockers.map(({ code, message }) => (
        <li key={code} title={message} data-testid="blocker" data-code={code}>
          <CircleAlert size={13} aria-hidden /> <span>{BLOCKERS[code]}</span>
        </li>
      ))}
    </ul>
  );
}

function Line({ icon: Icon, color, children }: { icon: LucideIcon; color: string; children: ReactNode }) {
  return (
    <Text size="xs" className={classes["line"]}>
      <Icon size={13} aria-hidden color={color} /> <span>{children}</span>
    </Text>
  );
}
