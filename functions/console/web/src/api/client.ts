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
  | "hold"
  | "jwks"
  | "lastUpdate"
  | "lastUpdateResult"
  | "lastUsed"
  | "maxExpiration"
  | "nextToken"
  | "of"
  | "on"
  | "onHold"
  | "organization"
  | "outcome"
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

type OfResource =
  | "custom"
  | "delete"
  | "external"
  | "id"
  | "isContext"
  | "parent"
  | "pendingReplacement"
  | "protect"
  | "provider";

type OfStateResource = "deposed" | "key" | "module" | "rejected" | "tainted";

type OfChange = "changesCut" | "new" | "old" | "secret";

/** More of them, in the answers of these paths alone. They are absent instead of `null`. */
interface AbsentIn {
  "/api/stacks/{orgName}/{projectName}/{stackName}/resource":
    | OfResource
    | "created"
    | "inputs"
    | "modified"
    | "propertyDependencies"
    | "sourcePosition"
    | "valuesBytes"
    | "valuesHidden";
  "/api/stacks/{orgName}/{projectName}/{stackName}/resource/history": OfChange | "continuationToken" | "ends" | "message";
  "/api/stacks/{orgName}/{projectName}/{stackName}/resource/neighbours": OfResource | "isCut";
  "/api/stacks/{orgName}/{projectName}/{stackName}/resources": OfResource | "continuationToken" | "matches" | "pendingCount";
  "/api/stacks/{orgName}/{projectName}/{stackName}/updates/{version}/diff/{other}": OfChange | "changes" | "delete";
  "/api/tfstates/{guid}/resource": OfStateResource;
  "/api/tfstates/{guid}/resource/history": "continuationToken";
  "/api/tfstates/{guid}/resource/neighbours": OfStateResource | "isCut";
  "/api/tfstates/{guid}/resource/values": OfStateResource;
  "/api/tfstates/{guid}/resources": OfStateResource | "continuationToken";
}

type Absent<Path> = Path extends keyof AbsentIn ? AbsentIn[Path] : never;

type Complete<T, Gone extends string> = T extends (infer Item)[]
  ? Complete<Item, Gone>[]
  : T extends object
    ? {
        [Name in keyof T as Name extends Optional | Gone ? never : Name]-?: Complete<Exclude<T[Name], undefined>, Gone>;
      } & {
        [Name in keyof T as Name extends Optional | Gone ? Name : never]?: Complete<
          Exclude<T[Name], Name extends Gone ? null | undefined : undefined>,
          Gone
        >;
      }
    : T;

/** The JSON that a GET of this path answers. */
export type Got<Path extends With<"get">> = Complete<Answer<Path, "get">, Absent<Path>>;

/** The JSON that a POST to this path answers. */
export type Posted<Path extends With<"post">> = Complete<Answer<Path, "post">, Absent<Path>>;

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

// What would be lost with this page: open dialogs, and what a person has typed and not saved.
const drafts = new Set<{ warning: string | undefined }>();

/**
 * Says that this page does not leave by itself, until what is returned is called. With a warning, a person who leaves is
 * asked too: it says what is lost.
 */
export function keepDraft(warning?: string): () => void {
  const draft = { warning };
  drafts.add(draft);
  return () => void drafts.delete(draft);
}

/** Loads the page again for the person who is signed in now, and discards its drafts. The page has said so. */
export function startAnew() {
  drafts.clear();
  window.location.reload();
}

/** What a person loses by leaving this page; `undefined` if that is nothing. */
export const draftWarning = () => [...drafts].findLast(({ warning }) => warning !== undefined)?.warning;

/** Whose page this is, and whether the server still takes it for theirs. */
export const session = {
  /** The server refused the session, and answered nothing else since. */
  isOver: false,
  /** Who is signed in, of whom the page knows. */
  login: undefined as string | undefined,
  /** Who is signed in instead. Nothing is sent any more: the page would mix what two people may see. */
  other: undefined as string | undefined,
  /** Somebody else may have signed in with another tab since the last look. */
  isUnsure: false,
  listeners: new Set<() => void>(),
  listen(listener: () => void) {
    session.listeners.add(listener);
    return () => void session.listeners.delete(listener);
  },
  tell() {
    for (const listener of session.listeners) listener();
  },
  set(isOver: boolean) {
    if (session.isOver === isOver) return;
    session.isOver = isOver;
    session.tell();
  },
  /** The server says that this user is signed in. */
  isOf(login: string) {
    session.login ??= login;
    session.isUnsure = false;
    const other = login === session.login ? undefined : login;
    if (other === session.other) return;
    session.other = other;
    session.tell();
  },
};

// Another tab or window is used meanwhile.
window.addEventListener("blur", () => {
  session.isUnsure = true;
});
document.addEventListener("visibilitychange", () => {
  session.isUnsure = true;
});

/** The page of sign-ins, which leads back to this address. */
export const signInAddress = () =>
  `/signin?next=${encodeURIComponent(window.location.pathname + window.location.search)}`;

/** Why a person has to sign in again, with what to do on a page that stays. */
async function over(response: Response): Promise<ApiError> {
  const { reason } = await refusal(response);
  const isOld = reason === "sign_in_too_old";
  const why = isOld ? "You signed in too long ago for this." : "You are not signed in any more.";
  const text = `${why} Nothing was done, and this page stays as it is: sign in in a new tab, then try again here.`;
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

const UNANSWERED = "The server does not answer. Nothing was changed by this page.";

// Nothing is shown of a page that is about to go.
const gone = () => new Promise<never>(() => {});

const WHO = "/api/user";

// Requests that begin together ask once.
let asked: Promise<void> | undefined;

/** Asks who is signed in. */
async function look(): Promise<void> {
  const response = await fetch(new Request(WHO, { headers: CONSOLE })).catch(() => {
    throw new ApiError(0, "", UNANSWERED);
  });
  // Without a session, the request itself is refused.
  if (response.status === 401) return;
  if (!response.ok) throw await refusal(response);
  session.isOf(((await response.json()) as { githubLogin: string }).githubLogin);
}

/** Refuses to go on for another person than the one of this page. Loads the page again if that loses nothing. */
export async function refuseOther(): Promise<void> {
  if (session.other === undefined) return;
  if (drafts.size === 0) {
    startAnew();
    return gone();
  }
  const text = `You are signed in as ${session.other} now, and this page is of ${session.login}. Nothing was sent.`;
  throw new ApiError(409, "other_user", text);
}

/** Sends a request. Every answer of the API comes through here. */
async function send(request: Request, isChange = request.method !== "GET"): Promise<Response> {
  if (session.login !== undefined && new URL(request.url).pathname !== WHO) {
    if (session.isUnsure || session.other !== undefined) {
      asked ??= look().finally(() => {
        asked = undefined;
      });
      await asked;
    }
    await refuseOther();
  }
  let response: Response;
  try {
    response = await fetch(request);
  } catch (error) {
    if (request.signal.aborted) throw error;
    // A change may have arrived, and only its answer be lost.
    const text = isChange
      ? "The server does not answer, so it is not known whether this was done. Reload the page and look, before you try again."
      : UNANSWERED;
    throw new ApiError(0, "", text);
  }
  if (response.status === 401) {
    // Another person may sign in.
    session.isUnsure = true;
    // To leave would lose what is on the page. A change is always made from something on it.
    if (isChange || drafts.size > 0) {
      const error = await over(response);
      if (error.reason === "session_over") session.set(true);
      throw error;
    }
    window.location.replace(signInAddress());
    return gone();
  }
  session.set(false);
  if (!response.ok) throw await refusal(response);
  return response;
}

const client = createClient<paths>({
  baseUrl: window.location.origin,
  headers: CONSOLE,
  fetch: (request: Request) => send(request),
});

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
export async function readExactly<Path extends With<"get">>(
  path: Path,
  names: In<Path>,
  query: Query,
  signal?: AbortSignal,
): Promise<Got<Path>> {
  const get = client.GET as unknown as (path: string, options: unknown) => Promise<{ data?: string }>;
  const { data } = await get(path, { params: { path: names, query }, signal, parseAs: "text" });
  return parse(data ?? "") as Got<Path>;
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

/** A definition of an environment. */
export interface Definition {
  text: string;
  revision: number;
  /** What a change has to name, so that it replaces nothing that was not read. */
  etag: string;
}

async function definitionOf(request: Request): Promise<Definition> {
  const response = await send(request, false);
  return {
    text: await response.text(),
    revision: Number(response.headers.get("pulumi-esc-revision")),
    etag: response.headers.get("etag") ?? "",
  };
}

/** Reads a definition, with sealed secrets. */
export const readDefinition = (url: string, signal?: AbortSignal) =>
  definitionOf(new Request(url, { headers: CONSOLE, signal }));

/** Reads a definition in plain text, which the audit trail records. */
export const decryptDefinition = (url: string) => definitionOf(new Request(url, { method: "POST", headers: CONSOLE }));

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

/**
 * Saves an answer as a file, byte for byte, under the name that the server gives it. The page reads nothing of it. An answer
 * that is too long for the server's gateway has the address at which the store serves the file. The browser saves that
 * too, and stays on the page.
 */
export async function download(url: string, method: "GET" | "POST" = "POST"): Promise<void> {
  const response = await send(new Request(url, { method, headers: CONSOLE }), false);
  const name = /filename="([\w.-]+)"/.exec(response.headers.get("Content-Disposition") ?? "")?.[1];
  const link = document.createElement("a");
  if (name === undefined) {
    const found = (await response.json()) as { url?: unknown };
    if (typeof found.url !== "string" || !/^https?:/.test(found.url)) {
      throw new ApiError(response.status, "", "The server sent something else than a file. Nothing was saved.");
    }
    link.href = found.url;
    link.rel = "noreferrer";
    link.click();
    return;
  }
  const file = await response.blob().catch(() => {
    throw new ApiError(0, "", "The download broke off, and nothing was saved.");
  });
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/**
 * Asks for values by a POST, which the audit trail records and which changes nothing. Numbers that the browser would
 * round stay texts.
 */
export async function reveal(url: string, body?: unknown, signal?: AbortSignal): Promise<unknown> {
  const headers = { ...CONSOLE, ...(body !== undefined && { "Content-Type": "application/json" }) };
  const request = new Request(url, { method: "POST", headers, body: JSON.stringify(body), signal });
  const response = await send(request, false);
  return parse(await response.text());
}
