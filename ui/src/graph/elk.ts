/**
 * Elk in its worker.
 *
 * While Trunkline does not answer there is no script for a worker to load, and elk would never say so: then the graph
 * waits for it, as pages do. One that still cannot be loaded then is of another version.
 */

import ELK, { type ElkNode } from "elkjs/lib/elk-api";
import ElkWorker from "elkjs/lib/elk-worker.min.js?worker";

import { untilItAnswers } from "../api/connection.ts";

interface Engine {
  readonly elk: InstanceType<typeof ELK>;
  /** Rejected when the worker cannot work, for all who wait. */
  readonly broken: Promise<never>;
}

class WorkerMissing extends Error {}

let engine: Engine | null = begin();

export async function layOutByElk(graph: ElkNode): Promise<ElkNode> {
  try {
    return await ask(graph);
  } catch (error) {
    if (!(error instanceof WorkerMissing)) throw error;
    await untilItAnswers();
    return ask(graph);
  }
}

function ask(graph: ElkNode): Promise<ElkNode> {
  engine ??= begin();
  return Promise.race([engine.elk.layout(graph), engine.broken]);
}

function begin(): Engine {
  const worker = new ElkWorker();
  const broken = new Promise<never>((_, reject) => {
    worker.addEventListener("error", () => {
      engine = null;
      worker.terminate();
      reject(
        new WorkerMissing(
          "What lays out the graph could not be loaded. Trunkline may be of another version by now: load the page anew.",
        ),
      );
    });
  });
  // Where nobody waits yet, who comes next begins anew.
  broken.catch(() => {});
  return { elk: new ELK({ workerFactory: () => worker }), broken };
}
