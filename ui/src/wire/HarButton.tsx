/** Downloads the exchanges as an HTTP Archive, which browser developer tools can open. */

import { Button } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { Download } from "lucide-react";

import { download } from "../app/download.ts";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { archiveOf } from "./har.ts";

export function HarButton({ run, step, attempt }: { run: string; step: string | null; attempt: number | null }) {
  const archive = useMutation({
    mutationFn: () => archiveOf(run, step, attempt),
    onSuccess: (text) => download(text, `${[run, step, attempt].filter((part) => part !== null).join("-")}.har`),
  });
  const whose = attempt !== null ? `attempt ${attempt}` : step !== null ? "the step" : "the run";
  if (archive.error !== null) return <ProblemPanel error={archive.error} again={() => archive.mutate()} />;
  return (
    <Button
      size="compact-xs"
      variant="default"
      leftSection={<Download size={13} aria-hidden />}
      loading={archive.isPending}
      onClick={() => archive.mutate()}
      title={`Download all exchanges of ${whose} as an HTTP Archive (HAR 1.2)`}
      data-testid="har"
    >
      HAR
    </Button>
  );
}
