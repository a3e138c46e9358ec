/** The result of the last health check of an agent, and its time. */

import { Tooltip } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { HeartCrack, HeartPulse } from "lucide-react";

import { Timestamp } from "../app/Timestamp.tsx";
import classes from "./agents.module.css";
import { healthCheckQuery } from "./healthChecks.ts";

export function HealthCheckMark({ agent }: { agent: string }) {
  const check = useQuery(healthCheckQuery(agent)).data;
  if (check === undefined || check.status === "unknown") return null;
  const answers = check.status === "healthy";
  const Icon = answers ? HeartPulse : HeartCrack;
  return (
    <Tooltip label={check.detail} openDelay={300} multiline maw={320}>
      <span
        className={classes["mark"]}
        style={{ color: answers ? "var(--status-completed)" : "var(--status-failed)" }}
        data-testid="health-check"
        data-value={check.status}
      >
        <Icon size={15} aria-hidden />
        <span>
          {answers ? "Responded" : "Not healthy"} <Timestamp at={check.at} />
        </span>
      </span>
    </Tooltip>
  );
}
