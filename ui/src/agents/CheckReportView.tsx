/** The report of one check: its findings, how to fix them, and the exchanges that show them. */

import { Checkbox, Code, Group, Stack, Text } from "@mantine/core";
import { ChevronRight } from "lucide-react";
import { useState } from "react";

import { formatDuration, Timestamp } from "../app/Timestamp.tsx";
import classes from "./agents.module.css";
import { GradeBadge, VerdictBadge } from "./Badges.tsx";
import type { CheckFinding, CheckReport } from "./queries.ts";

const ORDER: readonly CheckFinding["verdict"][] = ["failed", "warning", "passed", "skipped"];

export function CheckReportView({ report }: { report: CheckReport }) {
  const [all, setAll] = useState(false);
  const ordered = [...report.findings].sort((one, other) => ORDER.indexOf(one.verdict) - ORDER.indexOf(other.verdict));
  const wrong = ordered.filter(({ verdict }) => verdict === "failed" || verdict === "warning");
  const shown = all ? ordered : wrong;
  const passed = report.findings.filter(({ verdict }) => verdict === "passed").length;
  return (
    <Stack gap="sm" data-testid="report">
      <Group gap="md">
        <GradeBadge grade={report.grade} passed={report.passed} />
        <Text size="sm" c="dimmed">
          {report.protocol}, <Timestamp at={report.started_at} />, {formatDuration(report.duration_ms)}
          {report.active ? ", with test messages" : ", without test messages"}
        </Text>
      </Group>
      <Text size="sm" className={classes["wrap"]}>
        {report.chosen}
      </Text>
      <Group gap="md" justify="space-between">
        <Text size="sm">
          {wrong.length === 0
            ? "No problems found."
            : `${wrong.length} ${wrong.length === 1 ? "problem" : "problems"} found.`}{" "}
          {passed} of {report.findings.length} checks passed.
        </Text>
        <Checkbox
          size="xs"
          label="Show passed and skipped checks"
          checked={all}
          onChange={(event) => setAll(event.currentTarget.checked)}
          data-testid="show-all-findings"
        />
      </Group>
      <div>
        {shown.map((finding) => (
          <FindingView key={finding.id} finding={finding} />
        ))}
      </div>
      {report.attestations.length > 0 && <Attestations attestations={report.attestations} />}
    </Stack>
  );
}

function Attestations({ attestations }: { attestations: CheckReport["attestations"] }) {
  const attested = attestations.filter((each) => each.attested).length;
  return (
    <details className={classes["finding"]}>
      <summary>
        <Text size="sm" c="dimmed">
          Manual
        </Text>
        <span>
          Attestations: {attested} of {attestations.length}
        </span>
        <ChevronRight size={15} aria-hidden className={classes["chevron"]} />
      </summary>
      <Stack gap={6} className={classes["body"]}>
        {attestations.map((each) => (
          <Text key={each.id} size="sm">
            {each.attested ? "Attested" : "Not attested"}: {each.title}.{" "}
            {each.note === null ? <Code>{each.how}</Code> : `“${each.note}”`}
          </Text>
        ))}
      </Stack>
    </details>
  );
}

function FindingView({ finding }: { finding: CheckFinding }) {
  const isWrong = finding.verdict === "failed" || finding.verdict === "warning";
  return (
    <details
      className={classes["finding"]}
      open={finding.verdict === "failed"}
      data-testid="finding"
      data-finding={finding.id}
    >
      <summary>
        <VerdictBadge verdict={finding.verdict} />
        <span>{finding.title}</span>
        <ChevronRight size={15} aria-hidden className={classes["chevron"]} />
      </summary>
      <Stack gap="xs" className={classes["body"]}>
        <dl className={classes["facts"]}>
          <dt>Expected</dt>
          <dd>{finding.expected}</dd>
          <dt>Found</dt>
          <dd>{finding.seen}</dd>
          {isWrong && (
            <>
              <dt>Fix</dt>
              <dd>
                <b>{finding.fix}</b>
              </dd>
            </>
          )}
          <dt>Check</dt>
          <dd>
            <Code>{finding.id}</Code>, {finding.level}. See {finding.guide}
          </dd>
        </dl>
        {finding.evidence.map((evidence, place) => (
          <EvidenceView key={place} evidence={evidence} />
        ))}
      </Stack>
    </details>
  );
}

function EvidenceView({ evidence }: { evidence: CheckFinding["evidence"][number] }) {
  const { request, response } = evidence;
  return (
    <Stack gap={4}>
      <Text size="xs" ff="monospace" className={classes["wrap"]}>
        {request.method} {request.url} →{" "}
        {response === null ? (evidence.error ?? "no response") : `HTTP ${response.status}`},{" "}
        {formatDuration(evidence.duration_ms)}
      </Text>
      {request.body !== "" && <Piece label="Request" text={request.body} />}
      {response !== null && response.body !== "" && <Piece label="Response" text={response.body} />}
      {evidence.notes.map((note) => (
        <Text key={note} size="xs" c="dimmed">
          {note}
        </Text>
      ))}
    </Stack>
  );
}

function Piece({ label, text }: { label: string; text: string }) {
  return (
    <pre className={classes["pre"]} tabIndex={0} aria-label={label}>
      {text}
    </pre>
  );
}
