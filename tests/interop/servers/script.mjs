// What script.py is for the agents in Python: the same words do the same, and the same files are written.
// Run as: node PROGRAM PORT FOLDER.

import { appendFileSync, existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

const [port, folder] = process.argv.slice(2);
// How often a file is looked for.
const LOOK_MILLISECONDS = 20;

const memory = new Map();
const cancelled = new Set();

export function note(kind, line) {
  appendFileSync(join(folder, `${kind}.jsonl`), `${JSON.stringify(line)}\n`);
}

// `stage` tells the client what happens, as the SDK wants it.
export async function play(stage, text, others, { taskId, contextId, messageId, answers }) {
  note("executions", { messageId, contextId, text });
  const [word, ...words] = text.split(" ");
  const rest = words.join(" ");
  if (word === "say") return stage.say(rest);
  stage.begin();
  switch (answers ? "" : word) {
    case "work":
      if (!(await liesThere(rest, taskId))) return stage.cancel();
      stage.give(`Done: ${rest}`, []);
      break;
    case "stream":
      stage.work("It begins");
      stage.giveChunk("Once upon ", false, false);
      if (!(await liesThere(rest, taskId))) return stage.cancel();
      stage.giveChunk("a time", true, true);
      break;
    case "fail":
      return stage.fail(rest);
    case "crash":
      throw new Error(rest);
    case "ask":
      return stage.ask(rest);
    case "remember":
      memory.set(contextId, rest);
      stage.give(`Kept: ${rest}`, []);
      break;
    case "recall":
      stage.give(`You said: ${memory.get(contextId) ?? "nothing"}`, []);
      break;
    default:
      stage.give(`Heard: ${text}`, others);
  }
  return stage.complete();
}

export function cancel(taskId) {
  cancelled.add(taskId);
}

// False when the task was cancelled meanwhile.
async function liesThere(name, taskId) {
  while (!existsSync(join(folder, name))) {
    if (cancelled.has(taskId)) return false;
    await pause(LOOK_MILLISECONDS);
  }
  return true;
}

// Writes every request down when it has arrived; reads along with the SDK's own parser.
export function noteCalls(request, _response, next) {
  if (request.method === "POST") {
    const chunks = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => note("calls", seen(request.path, Buffer.concat(chunks))));
  }
  next();
}

function seen(path, body) {
  try {
    const request = JSON.parse(body);
    const params = request.params ?? request;
    const message = params.message ?? {};
    const texts = (message.parts ?? []).map((part) => part.text).filter((text) => text !== undefined);
    return {
      at: Date.now() / 1000,
      path,
      method: request.method ?? null,
      messageId: message.messageId ?? null,
      taskId: message.taskId ?? params.id ?? null,
      contextId: message.contextId ?? null,
      text: texts.join("\n"),
    };
  } catch {
    return { path, method: null };
  }
}

export const url = `http://127.0.0.1:${port}`;

export function serve(app) {
  app.listen(Number(port), "127.0.0.1", () => console.log(url));
}
