/** The kinds of inbox items with their texts. */

import { CircleHelp, KeyRound, Undo2, UserCheck, MessageCircleQuestionMark, type LucideIcon } from "lucide-react";

import type { Kind } from "./queries.ts";

interface Look {
  readonly icon: LucideIcon;
  /** The label in the filter. */
  readonly name: string;
  readonly title: (agent: string) => string;
  readonly next: (agent: string, step: string) => string;
}

export const KINDS: Readonly<Record<Kind, Look>> = {
  input: {
    icon: MessageCircleQuestionMark,
    name: "Questions",
    title: (agent) => `Question from ${agent}`,
    next: (agent, step) =>
      `Your reply is sent to ${agent} as the next message of this conversation. The step “${step}” then continues. The agent may ask again.`,
  },
  auth: {
    icon: KeyRound,
    name: "Login requests",
    title: (agent) => `Login required by ${agent}`,
    next: (agent, step) =>
      `Log in as ${agent} describes, then confirm it here. The step “${step}” then continues. Your reply is stored with the run, so don't enter passwords.`,
  },
  person: {
    icon: UserCheck,
    name: "Tasks",
    title: () => "Task",
    next: (_, step) => `Your answer is the output of the step “${step}”. The run then continues.`,
  },
  compensation: {
    icon: Undo2,
    name: "Failed compensations",
    title: () => "A compensation has failed",
    next: (_, step) => `The run does not continue until you decide about “${step}”.`,
  },
  outcome: {
    icon: CircleHelp,
    name: "Unknown outcomes",
    title: (agent) => `Unknown outcome of a call to ${agent}`,
    next: (agent, step) =>
      `The call may or may not have been executed, and the step “${step}” is never repeated automatically. Check at ${agent} what happened, then resolve it here.`,
  },
};
