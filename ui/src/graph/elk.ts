/**
 * Runs the elk layout engine in a web worker.
 *
 * Elk does not report that its worker failed to load. While the server is unreachable, the graph waits, as pages do. A
 * script that cannot be loaded after that belongs to another version.
 */

import ELK, { type ElkNode } from "elkjs/lib/elk-api";
import ElkWorker from "elkjs/lib/elk-worker.min.js?worker";

import { waitUntilReachable } from "../api/connection.ts";

interface Engine {
  readonly elk: InstanceType<typeof ELK>;
  /** Rejects for all callers when the worker fails. */
  readonly broken: Promise<never>;
}

class WorkerMissing extends Error {}

let engine: Engine | null = begin();

export async function layOutByElk(graph: ElkNode): Promise<ElkNode> {
  try {
    return await ask(graph);
  } catch (error) {
    if (!(error instanceof WorkerMissing)) throw error;
    await waitUntilReachable();
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
        new WorkerMissing("The graph layout could not be loaded. Trunkline may have been updated. Reload the page."),
      );
    });
  });
  // The next call starts a new worker.
  broken.catch(() => {});
  return { elk: new ELK({ workerFactory: () => worker }), broken };
}
