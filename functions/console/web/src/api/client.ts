// The one way to the server: the public JSON API, with the session of this browser.

import createClient from "openapi-fetch";
import type { paths } from "./schema";

/** The pages of paths that answer JSON to this method. */
type With<Method extends string> = {
  [Path in keyof paths]: paths[Path] extends { [M in Method]: { responses: { 200: { content: { "application/json": unknown } } } } }
    ? Path
    : never;
}[keyof paths];

type Answer<Path extends keyof paths, Method extends string> = paths[Path] extends {
  [M in Method]: { responses: { 200: { content: { "application/json": infer Body } } } };
}
  ? Body
  : never;

/** Members that an answer has only if there is something to say. The server sends all others, which the document does not tell. */
type Optional =
  | "authFailure"
  | "config"
  | "continuationToken"
  | "createdBy"
  | "currentOperation"
  | "deletedAt"
  | "grant"
  | "jwks"
  | "lastUpdate"
  | "lastUpdateResult"
  | "lastUsed"
  | "maxExpiration"
  | "nextToken"
  | "of"
  | "on"
  | "organization"
  | "outputs"
  | "protection"
  | "resourceChanges"
  | "resourceCount"
  | "retracted"
  | "role"
  | "roleID"
  | "runnerID"
  | "secretsProviders"
  | "teamName"
  | "tokenInfo"
  | "tokenName"
  | "userLogin"
  | "validity";

type Complete<T> = T extends (infer Item)[]
  ? Complete<Item>[]
  : T extends object
    ? { [Name in keyof T as Name extends Optional ? never : Name]-?: Complete<Exclude<T[Name], undefined>> } & {
        [Name in keyof T as Name extends Optional ? Name : never]?: Complete<Exclude<T[Name], undefined>>;
      }
    : T;

/** The JSON that a GET of this path answers. */
export type Got<Path extends With<"get">> = Complete<Answer<Path, "get">>;

type Names<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}` ? Name | Names<Rest> : never;

/** The parameters in a path. */
export type In<Path extends string> = [Names<Path>] extends [never] ? Record<string, never> : Record<Names<Path>, string>;

type Query = Record<string, string | number | boolean | undefined>;

/** A refusal of the server, or its absence. */
export class ApiError extends Error {
  constructor(
    /** The HTTP status; 0 if no answer came. */
    readonly status: number,
    /** The word for scripts, such as `stack_locked`. */
    readonly reason: string,
    message: string,
    /** The whole answer, if it was JSON. */
    readonly body: Record<string, unknown> = {},
  ) {
    super(message);
  }
}

// A browser asks no other site for permission to send it, and no form can.
const CONSOLE = { "X-Statewright-Console": "1" };

// What would be lost with this page: what a person has typed and not saved, and open dialogs.
let drafts = 0;

/** Says that this page holds something that would be lost, until what is returned is called. */
export function keepDraft(): () => void {
  drafts += 1;
  return () => {
    drafts -= 1;
  };
}

/** Whether the server has refused the session of this page, and answered nothing else since. */
export const session = {
  isOver: false,
  listeners: new Set<() => void>(),
  listen(listener: () => void) {
    session.listeners.add(listener);
    return () => void session.listeners.delete(listener);
  },
  set(isOver: boolean) {
    if (session.isOver === isOver) return;
    session.isOver = isOver;
    for (const listener of session.listeners) listener();
  },
};

/** The page of sign-ins, which leads back to this address. */
export const signInAddress = () =>
  `/signin?next=${encodeURIComponent(window.location.pathname + window.location.search)}`;

/** Why a person has to sign in again, with what to do on a page that stays. */
async function over(response: Response): Promise<ApiError> {
  const { reason } = await refusal(response);
  const isOld = reason === "sign_in_too_old";
  const why = isOld ? "You signed in too long ago for this." : "You are not signed in any more.";
  const text = `${why} Nothing was changed, and this page stays as it is: sign in in a new tab, then try again here.`;
  return new ApiError(401, isOld ? reason : "session_over", text);
}

async function refusal(response: Response): Promise<ApiError> {
  const text = await response.text();
  try {
    const body = JSON.parse(text) as { message?: string; reason?: string } & Record<string, unknown>;
    // The status is in front of the text, for a terminal.
    const message = (body.message ?? "").replace(/^[A-Z][A-Za-z ]+: /, "");
    return new ApiError(response.status, body.reason ?? "", message || `The server answered ${response.status}.`, body);
  } catch {
    return new ApiError(response.status, "", `The server answered ${response.status}.`);
  }
}

/** Sends a request. Every answer of the API comes through here. */
async function send(request: Request): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(request);
  } catch (error) {
    if (request.signal.aborted) throw error;
    // A change may have arrived, and only its answer be lost.
    const text =
      request.method === "GET"
        ? "The server does not answer. Nothing was changed by this page."
        : "The server does not answer, so it is not known whether this was done. Reload the page and look, before you try again.";
    throw new ApiError(0, "", text);
  }
  if (response.status === 401) {
    // To leave would lose what is on the page. A change is always made from something on it.
    if (request.method !== "GET" || drafts > 0) {
      const error = await over(response);
      if (error.reason === "session_over") session.set(true);
      throw error;
    }
    window.location.replace(signInAddress());
    // Nothing is shown of a page that is about to go.
    return new Promise<never>(() => {});
  }
  session.set(false);
  if (!response.ok) throw await refusal(response);
  return response;
}

const client = createClient<paths>({ baseUrl: window.location.origin, headers: CONSOLE, fetch: send });

/** Reads JSON. */
export async function read<Path extends With<"get">>(
  path: Path,
  names: In<Path>,
  query: Query = {},
  signal?: AbortSignal,
): Promise<Got<Path>> {
  // Each path has a query of its own, and the callers give plain values.
  const get = client.GET as unknown as (path: string, options: unknown) => Promise<{ data?: unknown }>;
  const { data } = await get(path, { params: { path: names, query }, signal });
  return data as Got<Path>;
}

/** Reads JSON whose values are shown, with long numbers as they are. */
export async function readExactly(
  path: With<"get">,
  names: Record<string, string>,
  query: Query,
  signal?: AbortSignal,
): Promise<unknown> {
  const get = client.GET as unknown as (path: string, options: unknown) => Promise<{ data?: string }>;
  const { data } = await get(path, { params: { path: names, query }, signal, parseAs: "text" });
  return parse(data ?? "");
}

/** Sends a change, and returns its JSON; `undefined` without one. */
export async function change<Path extends keyof paths>(
  method: "POST" | "PUT" | "PATCH" | "DELETE",
  path: Path,
  names: In<Path & string>,
  body?: unknown,
  query: Query = {},
): Promise<unknown> {
  const ask = client[method] as unknown as (path: string, options: unknown) => Promise<{ data?: unknown }>;
  const { data } = await ask(path as string, { params: { path: names, query }, body });
  return data;
}

/** An address of the API. */
export function address<Path extends keyof paths>(path: Path, names: In<Path & string>): string {
  return (path as string).replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent((names as Record<string, string>)[name] ?? ""),
  );
}

/** Reads an answer as text. */
export async function text(url: string): Promise<string> {
  return (await send(new Request(url, { headers: CONSOLE }))).text();
}

/** A definition of an environment. */
export interface Definition {
  text: string;
  revision: number;
  /** What a change has to name, so that it replaces nothing that was not read. */
  etag: string;
}

export async function readDefinition(url: string, signal?: AbortSignal): Promise<Definition> {
  const response = await send(new Request(url, { headers: CONSOLE, signal }));
  return {
    text: await response.text(),
    revision: Number(response.headers.get("pulumi-esc-revision")),
    etag: response.headers.get("etag") ?? "",
  };
}

/** Sends a definition, and returns the JSON that the server answers. `etag` is of the one that it replaces. */
export async function sendDefinition(
  method: "POST" | "PATCH",
  url: string,
  body: string,
  { etag, signal }: { etag?: string; signal?: AbortSignal } = {},
): Promise<unknown> {
  const headers = { ...CONSOLE, "Content-Type": "application/x-yaml", ...(etag && { "If-Match": etag }) };
  const response = await send(new Request(url, { method, headers, body, signal }));
  return parse(await response.text());
}

/** Reads JSON to show it. A number that the browser would round stays a text, in browsers that tell it. */
export function parse(text: string): unknown {
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  type Reviver = (key: string, value: unknown, context?: { source?: string }) => unknown;
  const exact: Reviver = (_, value, context) =>
    typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source ?? "")
      ? context?.source
      : value;
  return JSON.parse(text, exact);
}

/** Saves an answer as a file, byte for byte. */
export async function download(url: string, name: string): Promise<void> {
  const response = await send(new Request(url, { headers: CONSOLE }));
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await response.blob());
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Asks for values by a POST, which the audit trail records. Numbers that the browser would round stay texts. */
export async function reveal(url: string, body: unknown, signal?: AbortSignal): Promise<unknown> {
  const headers = { ...CONSOLE, "Content-Type": "application/json" };
  const response = await send(new Request(url, { method: "POST", headers, body: JSON.stringify(body), signal }));
  return parse(await response.text());
}
