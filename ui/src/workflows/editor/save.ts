/** Saves a definition as the next version. */

import { api } from "../../api/client.ts";
import { Problem } from "../../api/problem.ts";
import type { components } from "../../api/schema.d.ts";
import { asText } from "./validation.ts";

export type SavedWorkflow = components["schemas"]["SavedWorkflow"];

export interface Saved {
  readonly workflow: SavedWorkflow;
  /** False if the latest version already has this content. */
  readonly created: boolean;
}

export async function saveDefinition(text: string): Promise<Saved> {
  const { data, response } = await api.POST("/api/v1/workflows", asText(text));
  return { workflow: data as SavedWorkflow, created: response.status === 201 };
}

/** The latest version of a workflow, or null if it does not exist. */
export async function latestVersion(name: string): Promise<number | null> {
  try {
    const { data } = await api.GET("/api/v1/workflows/{workflow}", { params: { path: { workflow: name } } });
    return data?.version ?? null;
  } catch (error) {
    if (error instanceof Problem && error.status === 404) return null;
    throw error;
  }
}
