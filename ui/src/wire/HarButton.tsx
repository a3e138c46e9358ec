/** Downloads what was on the wire as an HTTP Archive, for a browser's developer tools. */

import { Button } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { Download } from "lucide-react";

import { download } from "../app/download.ts";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { archiveOf } from "./har.ts";

export function HarButton({ run, step }: { run: string; step: string | null }) {
  const archive = useMutation({
    mutationFn: () => archiveOf(run, step),
    onSuccess: (text) => download(text, `${step === null ? run : `${run}-${step}`}.har`),
  });
  if (archive.error !== null) return <ProblemPanel error={archive.error} again={() => archive.mutate()} />;
  return (
    <Button
      size="compact-xs"
      variant="default"
      leftSection={<Download size={13} aria-hidden />}
      loading={archive.isPending}
      onClick={() => archive.mutate()}
      title={step === null ? "All exchanges of the run, as an HTTP Archive (HAR 1.2)" : "All exchanges of the step, as an HTTP Archive (HAR 1.2)"}
      data-testid="har"
    >
      HAR
    </Button>
  );
}
