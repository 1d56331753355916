// The protection of a stack or a state: no user can delete or destroy it until an admin lifts it.

import { useQueryClient } from "@tanstack/react-query";
import { change } from "../api/client";
import type { Protection, StackName } from "../api/queries";
import { stackPath } from "../api/queries";
import { Confirm } from "../ui/parts";
import { Asks, Mark } from "./marks";

/** What is protected. */
export type Protected = { stack: StackName } | { state: { id: string; project: string; state: string } };

const nameOf = (of: Protected) =>
  "stack" in of ? `${of.stack.project}/${of.stack.stack}` : `${of.state.project}/${of.state.state}`;

const STACK = "/api/stacks/{orgName}/{projectName}/{stackName}/protection";
const STATE = "/api/tfstates/{guid}/protection";

function Protect({ of, onClose }: { of: Protected; onClose: () => void }) {
  const client = useQueryClient();
  const run = async (reason: string) => {
    if ("stack" in of) await change("PUT", STACK, stackPath(of.stack), { reason });
    else await change("PUT", STATE, { guid: of.state.id }, { reason });
    await client.invalidateQueries();
  };
  return (
    <Confirm
      title={`Protect ${nameOf(of)}?`}
      action="Protect it"
      isDangerous={false}
      needsReason
      onClose={onClose}
      run={run}
    >
      <p>
        {"stack" in of
          ? "No user can delete or destroy it, not even an admin, until an admin lifts the protection."
          : "No client can delete or empty it, not even an admin, until an admin lifts the protection."}{" "}
        Everything else works as before. Everyone whom it stops reads the reason.
      </p>
    </Confirm>
  );
}

function Lift({ of, onClose }: { of: Protected; onClose: () => void }) {
  const client = useQueryClient();
  const run = async () => {
    if ("stack" in of) await change("DELETE", STACK, stackPath(of.stack));
    else await change("DELETE", STATE, { guid: of.state.id });
    await client.invalidateQueries();
  };
  return (
    <Confirm title={`Lift the protection of ${nameOf(of)}?`} action="Lift it" onClose={onClose} run={run}>
      <p>From then on, users with the rights for it can delete or destroy it. Nothing is deleted now.</p>
    </Confirm>
  );
}

/** Says that something is protected, and by whom. */
export function ProtectedBy({ of, by, canChange }: { of: Protected; by: Protection | null | undefined; canChange: boolean }) {
  if (!by) return null;
  return (
    <Mark word="Protected" tone="good" by={by}>
      {canChange && <Asks text="Lift">{(close) => <Lift of={of} onClose={close} />}</Asks>}
    </Mark>
  );
}

/** The button that protects. */
export function ProtectButton({ of }: { of: Protected }) {
  return (
    <Asks text="Protect" icon="lock">
      {(close) => <Protect of={of} onClose={close} />}
    </Asks>
  );
}
