/** The kinds of things that wait for a person: how each is told. */

import { CircleHelp, KeyRound, MessageCircleQuestionMark, type LucideIcon } from "lucide-react";

import type { Kind } from "./waiting.ts";

interface Look {
  readonly icon: LucideIcon;
  /** In a filter. */
  readonly name: string;
  readonly title: (agent: string) => string;
  readonly next: (agent: string, step: string) => string;
}

export const KINDS: Readonly<Record<Kind, Look>> = {
  input: {
    icon: MessageCircleQuestionMark,
    name: "Questions",
    title: (agent) => `${agent} asks`,
    next: (agent, step) =>
      `Your answer goes to ${agent} as the next message of this conversation. The step “${step}” then goes on; it may ask again.`,
  },
  auth: {
    icon: KeyRound,
    name: "Log-ins",
    title: (agent) => `${agent} wants somebody to log in`,
    next: (agent, step) =>
      `Log in where ${agent} says, then tell it so here. The step “${step}” then goes on. What you write is kept with the run: no passwords.`,
  },
  outcome: {
    icon: CircleHelp,
    name: "Unknown outcomes",
    title: (agent) => `What became of the call to ${agent}?`,
    next: (agent, step) =>
      `The call may or may not have been carried out, and the step “${step}” is never called twice by itself. Find out at ${agent} what happened, then say so here.`,
  },
};
