// Stacks that a person holds by hand: nothing updates them until somebody releases them.

import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { change } from "../api/client";
import type { Protection, StackName } from "../api/queries";
import { stackPath } from "../api/queries";
import { Confirm, Select } from "../ui/parts";
import { Asks, Mark } from "./marks";

const HOLD = "/api/stacks/{orgName}/{projectName}/{stackName}/hold";

const textOf = ({ project, stack }: StackName) => `${project}/${stack}`;

/** Holds a stack: the only one that is given, or the one that the person chooses. */
export function HoldStack({ of, onClose }: { of: StackName[]; onClose: () => void }) {
  const client = useQueryClient();
  // The list may change while the dialog is open.
  const [isOne] = useState(of.length === 1);
  const [text, choose] = useState(isOne && of[0] ? textOf(of[0]) : "");
  const chosen = of.find((one) => textOf(one) === text);
  const run = async (reason: string) => {
    if (!chosen) return;
    await change("PUT", HOLD, stackPath(chosen), { reason });
    await client.invalidateQueries();
  };
  return (
    <Confirm
      title={isOne && chosen ? `Hold ${textOf(chosen)}?` : "Hold a stack?"}
      action="Hold it"
      isDangerous={false}
      isReady={chosen !== undefined}
      needsReason
      onClose={onClose}
      run={run}
    >
      {!isOne && (
        <Select
          label="Stack"
          value={text}
          onChange={choose}
          options={[["", "Choose a stack"], ...of.map((one): [string, string] => [textOf(one), textOf(one)])]}
        />
      )}
      <p>
        No update starts until somebody releases it. An update that runs goes on, and so do previews. Clients show the
        reason.
      </p>
    </Confirm>
  );
}

export function ReleaseStack({ name, onClose }: { name: StackName; onClose: () => void }) {
  const client = useQueryClient();
  const run = async () => {
    await change("DELETE", HOLD, stackPath(name));
    await client.invalidateQueries();
  };
  return (
    <Confirm title={`Release ${textOf(name)}?`} action="Release it" isDangerous={false} onClose={onClose} run={run}>
      <p>From then on, updates start again.</p>
    </Confirm>
  );
}

/** Says that a stack is held, and by whom. */
export function HeldBy({ name, by, canChange }: { name: StackName; by: Protection | null | undefined; canChange: boolean }) {
  if (!by) return null;
  return (
    <Mark word="On hold" tone="warn" by={by}>
      {canChange && <Asks text="Release">{(close) => <ReleaseStack name={name} onClose={close} />}</Asks>}
    </Mark>
  );
}

/** The button that holds a stack. */
export function HoldButton({ name }: { name: StackName }) {
  return (
    <Asks text="Hold" icon="lock">
      {(close) => <HoldStack of={[name]} onClose={close} />}
    </Asks>
  );
}
