// How things read. Times are the browser's; words are English.

const DATE = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "medium" });
const AGO = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const NUMBER = new Intl.NumberFormat("en");

const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["year", 365 * 24 * 3600],
  ["month", 30 * 24 * 3600],
  ["week", 7 * 24 * 3600],
  ["day", 24 * 3600],
  ["hour", 3600],
  ["minute", 60],
];

export const number = (count: number) => NUMBER.format(count);

/** The noun as it goes with this number. */
export const counted = (count: number | undefined, noun: string, plural = `${noun}s`) => (count === 1 ? noun : plural);

export const count = (of: number, noun: string, plural = `${noun}s`) => `${number(of)} ${counted(of, noun, plural)}`;

/** A time of the API, in milliseconds: Unix seconds, or RFC 3339. */
export const instant = (time: number | string) => (typeof time === "number" ? time * 1000 : Date.parse(time));

export const date = (at: number) => DATE.format(at);

export function ago(at: number, now = Date.now()): string {
  const seconds = Math.round((at - now) / 1000);
  const unit = UNITS.find(([, size]) => Math.abs(seconds) >= size);
  if (!unit) return Math.abs(seconds) < 10 ? "just now" : AGO.format(seconds, "second");
  return AGO.format(Math.trunc(seconds / unit[1]), unit[0]);
}

export function duration(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  const hours = Math.floor(whole / 3600);
  if (hours < 48) return `${hours} h ${Math.floor((whole % 3600) / 60)} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

export function bytes(count: number): string {
  if (count < 1000) return `${count} B`;
  if (count < 1e6) return `${(count / 1e3).toFixed(1)} kB`;
  return `${(count / 1e6).toFixed(1)} MB`;
}

const KINDS: Record<string, string> = {
  update: "Update",
  preview: "Preview",
  refresh: "Refresh",
  destroy: "Destroy",
  rename: "Rename",
  import: "Import",
  "resource-import": "Import of resources",
};

/** The kind of an update, as a title. */
export const kind = (kind: string) => KINDS[kind] ?? kind;

const OPERATIONS: Record<string, string> = {
  create: "created",
  update: "updated",
  delete: "deleted",
  replace: "replaced",
  same: "unchanged",
  "create-replacement": "created",
  "delete-replaced": "deleted",
  read: "read",
  "read-replacement": "read",
  refresh: "refreshed",
  import: "imported",
  "import-replacement": "imported",
  discard: "discarded",
  "discard-replaced": "discarded",
  "remove-pending-replace": "removed",
};

/** What an operation did, such as `created`. */
export const done = (operation: string) => OPERATIONS[operation] ?? operation;

// Characters that are not seen, and which can turn the text around them, as `domain/hidden.rs` has them. Joiners are a
// part of emoji and of words in some scripts, so they stay between characters outside of ASCII.
const UNSEEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e007f}]|(?<![^\u0000-\u007f\u200c\u200d])[\u200c\u200d]|[\u200c\u200d](?![^\u0000-\u007f\u200c\u200d])/gu;

/** Text that reads in the order in which it is written. All that pages show passes through here: see `ui/jsx.ts`. */
export const visible = (text: string) => text.replace(UNSEEN, "\ufffd");

/** The name of a resource, from its URN: what follows the last `::`. */
export const nameIn = (urn: string) => visible(urn.slice(urn.lastIndexOf("::") + 2));

/** The type of a resource, from its URN. */
export const typeIn = (urn: string) => urn.split("::")[2]?.split("$").at(-1) ?? "";

/** A type without its module: `aws:s3:Bucket` of `aws:s3/bucket:Bucket`. */
export function shortType(type: string): string {
  const [provider, module, name] = type.split(":");
  if (!name) return type;
  return [provider, module?.split("/")[0], name].filter(Boolean).join(":");
}

/** Text without the marks that the engine puts into it for colors, and without the escapes of terminals. */
const MARKS = /<\{%[^%]*%\}>|\u001b\[[0-9;]*[A-Za-z]/g;
export const plain = (text: string) => visible(text.replace(MARKS, ""));
