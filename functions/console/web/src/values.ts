// Values of resources and outputs: which are secret, how they differ, and how they read.

/** The member that marks a special value: pulumi v3.274.1, `sdk/go/common/resource/sig`. */
const SIGNATURE = "4dabf18193072939515e22adb298388d";
const SECRET = "1b47061264138c4ac30d75fd1eb44270";

/** What stands for a secret. */
export const MASK = "••••••••";

/** What the server writes for a value that a Terraform state marks as sensitive. */
export const SENSITIVE = "[sensitive]";

type Members = Record<string, unknown>;

export const isObject = (value: unknown): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The ciphertext of a secret; `undefined` for another value. */
export function ciphertext(value: unknown): string | undefined {
  if (!isObject(value) || value[SIGNATURE] !== SECRET) return undefined;
  return typeof value.ciphertext === "string" ? value.ciphertext : "";
}

/** Whether it is a secret or contains one. */
export function hasSecret(value: unknown): boolean {
  if (ciphertext(value) !== undefined) return true;
  if (Array.isArray(value)) return value.some(hasSecret);
  return isObject(value) && Object.values(value).some(hasSecret);
}

/** A value with its secrets opened. */
export interface Opened {
  /** A secret that was not opened is in it as before. */
  value: unknown;
  /** How many were opened. */
  count: number;
  /** Why the others were not. */
  error?: unknown;
}

/**
 * Opens each secret in a value by a request of its own, one after another. Ends with the first that is refused, and
 * when the signal says so. `open` gets the ciphertext, and the place as a JSON pointer.
 */
export async function openSecrets(
  value: unknown,
  open: (sealed: string, pointer: string) => Promise<unknown>,
  signal: AbortSignal,
): Promise<Opened> {
  const found: Opened = { value, count: 0 };
  const walk = async (value: unknown, pointer: string): Promise<unknown> => {
    if (found.error !== undefined || signal.aborted) return value;
    const sealed = ciphertext(value);
    if (sealed !== undefined) {
      try {
        const plain = await open(sealed, pointer);
        found.count += 1;
        return plain;
      } catch (error) {
        found.error = error;
        return value;
      }
    }
    if (Array.isArray(value)) {
      const all: unknown[] = [];
      for (const [index, one] of value.entries()) all.push(await walk(one, `${pointer}/${index}`));
      return all;
    }
    if (!isObject(value)) return value;
    const all: Record<string, unknown> = {};
    for (const [name, one] of Object.entries(value)) {
      all[name] = await walk(one, `${pointer}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`);
    }
    return all;
  };
  found.value = await walk(value, "");
  return found;
}

const SEALED = { [SIGNATURE]: SECRET, ciphertext: "" };

/** The value with a secret at each place that the server masked. */
export function resealed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(resealed);
  if (!isObject(value)) return value;
  const names = Object.keys(value);
  if (value.secret === true && names.length === 1) return SEALED;
  return Object.fromEntries(names.map((name) => [name, resealed(value[name])]));
}

/** The value with a mask for each secret. */
export function masked(value: unknown): unknown {
  if (ciphertext(value) !== undefined) return MASK;
  if (Array.isArray(value)) return value.map(masked);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, masked(member)]));
}

/** A value as text: a string as it is, everything else as JSON. */
export function textOf(value: unknown): string {
  const safe = masked(value);
  if (typeof safe === "string") return safe;
  return JSON.stringify(safe, null, 2) ?? "";
}

/** A property that differs. */
export interface Difference {
  path: string;
  /** `sealed` if both are secrets, whose ciphertexts differ: then only the server could tell. */
  how: "added" | "removed" | "changed" | "sealed";
  old?: unknown;
  new?: unknown;
  /** Why the values are not here. */
  note?: string;
}

/** Properties that are listed for a resource, at most. */
export const DIFFERENCES_MAX = 200;

/** The path of a member. */
export const member = (path: string, name: string) => {
  if (!/^[A-Za-z_][\w-]*$/.test(name)) return `${path}["${name}"]`;
  return path === "" ? name : `${path}.${name}`;
};

/** The properties in which two values differ, by path. */
export function differences(old: unknown, next: unknown, path = "", found: Difference[] = []): Difference[] {
  if (found.length > DIFFERENCES_MAX || Object.is(old, next)) return found;
  const isSealed = ciphertext(old) !== undefined || ciphertext(next) !== undefined;
  if (!isSealed && Array.isArray(old) && Array.isArray(next)) {
    for (let index = 0; index < Math.max(old.length, next.length); index++) {
      const at = `${path}[${index}]`;
      if (index >= old.length) found.push({ path: at, how: "added", new: next[index] });
      else if (index >= next.length) found.push({ path: at, how: "removed", old: old[index] });
      else differences(old[index], next[index], at, found);
    }
    return found;
  }
  if (!isSealed && isObject(old) && isObject(next)) {
    for (const name of new Set([...Object.keys(old), ...Object.keys(next)])) {
      const at = member(path, name);
      if (!(name in old)) found.push({ path: at, how: "added", new: next[name] });
      else if (!(name in next)) found.push({ path: at, how: "removed", old: old[name] });
      else differences(old[name], next[name], at, found);
    }
    return found;
  }
  if (ciphertext(old) !== undefined && ciphertext(next) !== undefined) {
    if (ciphertext(old) !== ciphertext(next)) found.push({ path, how: "sealed" });
    return found;
  }
  found.push({ path, how: "changed", old, new: next });
  return found;
}

/** The names and indexes of a path such as `tags.Name` or `list[0]["a b"]`. */
export const partsOf = (path: string): string[] =>
  [...path.matchAll(/([^.[\]]+)|\[(\d+)\]|\["((?:[^"\\]|\\.)*)"\]/g)].map(
    ([, name, index, quoted]) => name ?? index ?? quoted?.replaceAll('\\"', '"') ?? "",
  );

/** The value at a path. Nothing is known of the inside of a secret, so a path into one leads to all of it. */
export function at(value: unknown, path: string): unknown {
  let here = value;
  for (const key of partsOf(path)) {
    if (ciphertext(here) !== undefined) return here;
    if (Array.isArray(here)) here = here[Number(key)];
    else if (isObject(here)) here = here[key];
    else return undefined;
  }
  return here;
}
