/** Reads the fields of an agent card of any version. A field with an unexpected type counts as missing. */

import type { Json } from "../runs/inspector/jsonRows.ts";

export interface Skill {
  readonly name: string;
  readonly description: string | null;
  readonly tags: readonly string[];
  readonly examples: readonly string[];
}

export interface Interface {
  readonly transport: string;
  readonly version: string | null;
  readonly url: string | null;
}

export interface Card {
  readonly name: string | null;
  readonly description: string | null;
  readonly version: string | null;
  readonly provider: string | null;
  readonly links: readonly { readonly word: string; readonly url: string }[];
  readonly interfaces: readonly Interface[];
  readonly capabilities: readonly string[];
  readonly skills: readonly Skill[];
}

type Fields = Readonly<Record<string, unknown>>;

// Limits the lists; the raw card is shown next to them.
const MOST = 50;

export function cardOf(value: Json): Card {
  const card = fields(value);
  const provider = fields(card["provider"]);
  return {
    name: text(card["name"]),
    description: text(card["description"]),
    version: text(card["version"]),
    provider: text(provider["organization"]) ?? text(provider["name"]) ?? text(card["provider"]),
    links: [
      ["Documentation", text(card["documentationUrl"]) ?? text(card["documentation_url"])] as const,
      ["Provider website", text(provider["url"])] as const,
    ].flatMap(([word, url]) => (url === null ? [] : [{ word, url }])),
    interfaces: interfacesOf(card),
    capabilities: Object.entries(fields(card["capabilities"]))
      .filter(([, given]) => given === true)
      .map(([name]) => name)
      .slice(0, MOST),
    skills: list(card["skills"]).map(skillOf).slice(0, MOST),
  };
}

function interfacesOf(card: Fields): readonly Interface[] {
  const modern = list(card["supportedInterfaces"] ?? card["supported_interfaces"]).map((item) => ({
    transport: text(fields(item)["protocolBinding"]) ?? text(fields(item)["protocol_binding"]) ?? "Interface",
    version: text(fields(item)["protocolVersion"]) ?? text(fields(item)["protocol_version"]),
    url: text(fields(item)["url"]),
  }));
  const version = text(card["protocolVersion"]) ?? text(card["protocol_version"]);
  const url = text(card["url"]);
  const preferred =
    url === null && version === null
      ? []
      : [
          {
            transport: text(card["preferredTransport"]) ?? text(card["preferred_transport"]) ?? "JSONRPC",
            version,
            url,
          },
        ];
  const others = list(card["additionalInterfaces"] ?? card["additional_interfaces"]).map((item) => ({
    transport: text(fields(item)["transport"]) ?? "Interface",
    version,
    url: text(fields(item)["url"]),
  }));
  return [...modern, ...preferred, ...others].slice(0, MOST);
}

function skillOf(value: unknown): Skill {
  const skill = fields(value);
  return {
    name: text(skill["name"]) ?? text(skill["id"]) ?? "Unnamed skill",
    description: text(skill["description"]),
    tags: texts(skill["tags"]),
    examples: texts(skill["examples"]),
  };
}

function fields(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function text(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}

function texts(value: unknown): readonly string[] {
  return [...new Set(list(value).filter((each) => typeof each === "string"))].slice(0, MOST);
}
