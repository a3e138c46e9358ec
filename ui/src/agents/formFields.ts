/** The values of the agent form, and the JSON document that they become. */

import { parseExact } from "../api/exactJson.ts";
import type { Agent } from "./queries.ts";

export const PROTOCOLS = [
  "auto",
  "simple-a2a",
  "jsonrpc-2.0",
  "jsonrpc-call",
  "a2a-0.1",
  "a2a-0.1-paths",
  "a2a-0.2",
  "a2a-0.3",
  "a2a-1.0",
  "a2a-1.0-http",
] as const;

export type AuthType = Agent["auth_type"];

/** The fields of credentials with a fixed shape; other types are entered as JSON. */
export const SECRET_PARTS: Partial<
  Record<AuthType, readonly { readonly name: string; readonly label: string; readonly isSecret: boolean }[]>
> = {
  bearer: [{ name: "token", label: "Token", isSecret: true }],
  api_key: [
    { name: "name", label: "Header or parameter name", isSecret: false },
    { name: "value", label: "Key", isSecret: true },
    { name: "in", label: "Location: header or query", isSecret: false },
  ],
  basic: [
    { name: "username", label: "User name", isSecret: false },
    { name: "password", label: "Password", isSecret: true },
  ],
};

export const AUTH_TYPES: readonly { readonly value: AuthType; readonly label: string }[] = [
  { value: "none", label: "None" },
  { value: "bearer", label: "Bearer token" },
  { value: "api_key", label: "API key" },
  { value: "basic", label: "Basic (user name and password)" },
  { value: "headers", label: "Headers" },
  { value: "oauth2", label: "OAuth 2.0 client credentials" },
  { value: "signed", label: "Signed tokens" },
  { value: "mtls", label: "Client certificate (mTLS)" },
];

export interface Fields {
  readonly name: string;
  readonly url: string;
  readonly description: string;
  readonly protocol: string;
  readonly protocolConfig: string;
  readonly authType: AuthType;
  /** If empty in an update, the stored credentials are kept. */
  readonly secret: Readonly<Record<string, string>>;
  readonly secretJson: string;
  readonly timeoutMs: number | string;
  readonly maxConcurrency: number | string;
  readonly hasRate: boolean;
  readonly perSecond: number | string;
  readonly burst: number | string;
  readonly hasBreaker: boolean;
  readonly resend: Agent["resend"];
  readonly repeatable: boolean;
}

export const FRESH: Fields = {
  name: "",
  url: "",
  description: "",
  protocol: "auto",
  protocolConfig: "",
  authType: "none",
  secret: {},
  secretJson: "",
  timeoutMs: 30_000,
  maxConcurrency: 100,
  hasRate: false,
  perSecond: 10,
  burst: 1,
  hasBreaker: false,
  resend: "ask_first",
  repeatable: false,
};

export function fieldsOf(agent: Agent): Fields {
  return {
    ...FRESH,
    name: agent.name,
    url: agent.url,
    description: agent.description ?? "",
    protocol: agent.protocol,
    protocolConfig: agent.protocol_config === null ? "" : JSON.stringify(agent.protocol_config, null, 2),
    authType: agent.auth_type,
    timeoutMs: agent.timeout_ms,
    maxConcurrency: agent.max_concurrency,
    hasRate: agent.rate !== null,
    perSecond: agent.rate?.per_second ?? FRESH.perSecond,
    burst: agent.rate?.burst ?? FRESH.burst,
    hasBreaker: agent.breaker !== null,
    resend: agent.resend,
    repeatable: agent.repeatable,
  };
}

type Document = Readonly<Record<string, unknown>>;

/** The document that registers an agent. */
export function documentOf(fields: Fields): Document {
  return {
    name: fields.name.trim(),
    url: fields.url.trim(),
    description: fields.description === "" ? null : fields.description,
    protocol: fields.protocol,
    ...(fields.protocolConfig.trim() === "" ? {} : { protocol_config: parseExact(fields.protocolConfig) }),
    auth_type: fields.authType,
    ...secretOf(fields),
    timeout_ms: Number(fields.timeoutMs),
    max_concurrency: Number(fields.maxConcurrency),
    rate: fields.hasRate ? { per_second: Number(fields.perSecond), burst: Number(fields.burst) } : null,
    breaker: fields.hasBreaker ? true : null,
    resend: fields.resend,
    repeatable: fields.repeatable,
  };
}

/** The changes as a JSON merge patch, or null if there are none. */
export function patchOf(before: Fields, now: Fields): Document | null {
  const old = documentOf(before);
  const patch: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(documentOf(now))) {
    if (JSON.stringify(value) !== JSON.stringify(old[name])) patch[name] = value;
  }
  if (before.protocolConfig.trim() !== "" && now.protocolConfig.trim() === "") patch["protocol_config"] = null;
  return Object.keys(patch).length === 0 ? null : patch;
}

function secretOf({ authType, secret, secretJson }: Fields): Document {
  if (authType === "none") return {};
  if (SECRET_PARTS[authType] === undefined) {
    return secretJson.trim() === "" ? {} : { auth_config: JSON.parse(secretJson) as unknown };
  }
  const given = Object.entries(secret).filter(([, value]) => value !== "");
  return given.length === 0 ? {} : { auth_config: Object.fromEntries(given) };
}
