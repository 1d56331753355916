// Tags of a stack, and labels of a state: shown, and edited by those who may.

import { useState } from "react";
import { Button } from "react-aria-components";
import { visible } from "../format";
import { Card, Confirm, Line, Table } from "../ui/parts";

/** A tag that is added, or one that gets another value. */
interface Edited {
  name: string;
  value: string;
  isNew: boolean;
}

export function TagsCard({
  title,
  noun,
  of,
  about,
  canEdit,
  onSet,
  onRemove,
}: {
  title: string;
  /** What one of them is called. */
  noun: "tag" | "label";
  of: [string, string][];
  about: string;
  canEdit: boolean;
  onSet: (name: string, value: string, isNew: boolean) => Promise<void>;
  onRemove: (name: string) => Promise<void>;
}) {
  const [edited, edit] = useState<Edited>();
  const [removed, remove] = useState<string>();
  return (
    <Card
      title={title}
      count={of.length}
      actions={
        canEdit && (
          <Button className="button small" onPress={() => edit({ name: "", value: "", isNew: true })}>
            New {noun}
          </Button>
        )
      }
    >
      {of.length === 0 ? (
        <p className="none">It has none. {about}</p>
      ) : (
        <Table label={title} head={["Name", "Value", ...(canEdit ? [""] : [])]}>
          {of.map(([name, value]) => (
            <tr key={name}>
              <th scope="row">{visible(name)}</th>
              <td className="what">{visible(value)}</td>
              {canEdit && (
                <td className="actions">
                  <Button
                    className="button small"
                    aria-label={`Change the ${noun} ${name}`}
                    onPress={() => edit({ name, value, isNew: false })}
                  >
                    Change
                  </Button>
                  <Button
                    className="button small"
                    aria-label={`Remove the ${noun} ${name}`}
                    onPress={() => remove(name)}
                  >
                    Remove
                  </Button>
                </td>
              )}
            </tr>
          ))}
        </Table>
      )}
      {edited && (
        <Confirm
          title={edited.isNew ? `New ${noun}` : `Change the ${noun} ${edited.name}`}
          action={edited.isNew ? "Add it" : "Change it"}
          isDangerous={false}
          isReady={edited.name.trim() !== ""}
          onClose={() => edit(undefined)}
          run={() => onSet(edited.name.trim(), edited.value, edited.isNew)}
        >
          <p>A {noun} that a grant names gives rights, so it needs the role admin.</p>
          {edited.isNew && (
            <Line label="Name" value={edited.name} onChange={(name) => edit({ ...edited, name })} />
          )}
          <Line label="Value" value={edited.value} onChange={(value) => edit({ ...edited, value })} />
        </Confirm>
      )}
      {removed !== undefined && (
        <Confirm
          title={`Remove the ${noun} ${removed}?`}
          action="Remove it"
          onClose={() => remove(undefined)}
          run={() => onRemove(removed)}
        >
          <p>Nothing else changes.</p>
        </Confirm>
      )}
    </Card>
  );
}

/** A line of settings: what it is, what it does, and its button. */
export function Setting({ title, about, children }: { title: string; about: string; children: React.ReactNode }) {
  return (
    <div className="list-row">
      <span>
        <span className="strong">{title}.</span>
        <span className="faint"> {about}</span>
      </span>
      <span className="end">{children}</span>
    </div>
  );
}

/** Asks for a name before something with it is gone. */
export function TypedName({ name, value, onChange }: { name: string; value: string; onChange: (typed: string) => void }) {
  return <Line label={`Write ${name} to confirm`} value={value} onChange={onChange} />;
}
