// Asks before a person leaves a page that would lose something.

import { useBlocker } from "@tanstack/react-router";
import { useState } from "react";
import { draftWarning } from "../api/client";
import { Confirm } from "./parts";

const isLost = () => draftWarning() !== undefined;

// Filters and versions in the address of the same page keep what is on it.
const isAway = ({ current, next }: { current: { pathname: string }; next: { pathname: string } }) =>
  isLost() && current.pathname !== next.pathname;

/** The one place that asks: a page says by `keepDraft` what it would lose. */
export function Leaving() {
  const blocker = useBlocker({ shouldBlockFn: isAway, enableBeforeUnload: isLost, withResolver: true });
  if (blocker.status !== "blocked") return null;
  return <Asked onStay={blocker.reset} onLeave={blocker.proceed} />;
}

function Asked({ onStay, onLeave }: { onStay: () => void; onLeave: () => void }) {
  const [warning] = useState(draftWarning);
  return (
    <Confirm title="Leave without saving?" action="Leave" onClose={onStay} run={async () => onLeave()}>
      <p>{warning}</p>
    </Confirm>
  );
}
