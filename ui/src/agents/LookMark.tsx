/** What the last look at an agent has found, and when. */

import { Tooltip } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { HeartCrack, HeartPulse } from "lucide-react";

import { Timestamp } from "../app/Timestamp.tsx";
import classes from "./agents.module.css";
import { lookQuery } from "./looks.ts";

export function LookMark({ agent }: { agent: string }) {
  const look = useQuery(lookQuery(agent)).data;
  if (look === undefined || look.status === "unknown") return null;
  const answers = look.status === "healthy";
  const Icon = answers ? HeartPulse : HeartCrack;
  return (
    <Tooltip label={look.detail} openDelay={300} multiline maw={320}>
      <span
        className={classes["mark"]}
        style={{ color: answers ? "var(--status-completed)" : "var(--status-failed)" }}
        data-testid="look"
        data-value={look.status}
      >
        <Icon size={15} aria-hidden />
        <span>{answers ? "Answered" : "No answer"} <Timestamp at={look.at} /></span>
      </span>
    </Tooltip>
  );
}
