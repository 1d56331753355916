// Properties with what they were and are.

import { number, visible } from "../format";
import type { PropertyChange } from "../api/queries";
import { type Difference, resealed } from "../values";
import { Code } from "./parts";

/** Properties that are listed. */
const SHOWN = 200;

const HOW: Record<Difference["how"], string> = { added: "+", removed: "−", changed: "~", sealed: "?" };

export function Diff({ of, max = SHOWN }: { of: Difference[]; max?: number }) {
  if (of.length === 0) return <p className="none">No property changed.</p>;
  return (
    <ul className="diff">
      {of.slice(0, max).map(({ path, how, old, new: next, note }) => (
        <li key={path} className={`diff-${how}`}>
          <span className="sign" aria-hidden="true">
            {HOW[how]}
          </span>
          <span className="unseen">{how}: </span>
          <code className="diff-path">{visible(path)}</code>
          <span className="diff-values">
            {how === "sealed" && <span className="faint">a secret that was encrypted again</span>}
            {note !== undefined && <span className="faint">{note}</span>}
            {note === undefined && (how === "removed" || how === "changed") && <Code className="old" value={old} />}
            {note === undefined && how === "changed" && (
              <span aria-hidden="true" className="arrow">
                →
              </span>
            )}
            {note === undefined && (how === "added" || how === "changed") && <Code className="new" value={next} />}
          </span>
        </li>
      ))}
      {of.length > max && <li className="none">and {number(of.length - max)} more</li>}
    </ul>
  );
}

/** A change as the server reports it. It has no secrets, and no long values. */
export const differenceOf = ({ path, how: word, secret, old, new: next }: PropertyChange): Difference => {
  const how = word === "added" || word === "removed" ? word : "changed";
  if (secret) return { path, how, note: "a secret" };
  const isMissing = (how !== "added" && old === undefined) || (how !== "removed" && next === undefined);
  return { path, how, old: resealed(old), new: resealed(next), note: isMissing ? "not shown here" : undefined };
};
