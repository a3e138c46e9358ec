/** The labels of the kinds of time. `Gantt.module.css` has a pattern for each. */

import type { Labels } from "../../app/labels.ts";
import type { SpanKind } from "../model.ts";

export const KINDS: Labels<SpanKind, "name" | "verb"> = {
  call: { name: "Call", verb: "called the agent" },
  remote: { name: "Remote task", verb: "ran as a remote task" },
  child: { name: "Child run", verb: "waited for its child run" },
  items: { name: "Items", verb: "processed its items" },
  queued: { name: "Queued", verb: "was queued" },
  action: { name: "Action", verb: "did its action" },
  dormant: { name: "Waiting for a time or an event", verb: "waited for a time or an event" },
  backoff: { name: "Backoff", verb: "waited for its retry" },
  person: { name: "Waiting for a person", verb: "waited for a person" },
  unknown: { name: "Outcome unknown", verb: "had an unknown outcome" },
};
