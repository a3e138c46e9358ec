/** The kinds of time in words; each has a pattern of its own in `Gantt.module.css`. */

import type { Words } from "../../app/words.ts";
import type { SpanKind } from "../model.ts";

export const KINDS: Words<SpanKind, "name" | "verb"> = {
  call: { name: "Call", verb: "called the agent" },
  remote: { name: "Agent works", verb: "was worked on by the agent" },
  child: { name: "Other workflow", verb: "ran another workflow" },
  items: { name: "Items", verb: "worked on its items" },
  queued: { name: "Queued", verb: "waited for its turn" },
  backoff: { name: "Back-off", verb: "waited to try again" },
  person: { name: "Waits for a person", verb: "waited for a person" },
  unknown: { name: "Outcome unknown", verb: "had an outcome that nobody knew" },
};
