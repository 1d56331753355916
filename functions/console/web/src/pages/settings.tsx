// The tags of an environment, and whether it can be deleted.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { Button, Input, Label, TextField } from "react-aria-components";
import { change } from "../api/client";
import * as queries from "../api/queries";
import type { EnvironmentName } from "../api/queries";
import { visible } from "../format";
import { useRightsOnEnvironment } from "../rights";
import { Act, Card, Confirm, Loaded, Table, Time, useTitle } from "../ui/parts";
import { useName } from "./environment";
import { WhoMay } from "./orgparts";

const { ENVIRONMENT, environmentPath } = queries;

/** Adds a tag, or gives it another value. */
function TagDialog({ name, of, onClose }: { name: EnvironmentName; of?: [string, string]; onClose: () => void }) {
  const client = useQueryClient();
  const [key, setKey] = useState(of?.[0] ?? "");
  const [value, setValue] = useState(of?.[1] ?? "");
  const save = async () => {
    const names = environmentPath(name);
    const newTag = { name: key.trim(), value };
    if (of) {
      const body = { currentTag: { name: of[0], value: of[1] }, newTag };
      await change("PATCH", `${ENVIRONMENT}/tags/{tagName}`, { ...names, tagName: of[0] }, body);
    } else {
      await change("POST", `${ENVIRONMENT}/tags`, names, newTag);
    }
    await client.invalidateQueries({ queryKey: ["environment-tags", name] });
  };
  return (
    <Confirm
      title={of ? `Change the tag ${of[0]}` : "New tag"}
      action={of ? "Change it" : "Add it"}
      isDangerous={false}
      onClose={onClose}
      run={save}
    >
      <TextField className="entry" value={key} onChange={setKey} autoFocus={!of} isRequired>
        <Label>Name</Label>
        <Input />
      </TextField>
      <TextField className="entry" value={value} onChange={setValue} autoFocus={Boolean(of)}>
        <Label>Value</Label>
        <Input />
      </TextField>
    </Confirm>
  );
}

function Tags({ name }: { name: EnvironmentName }) {
  const client = useQueryClient();
  const tags = useQuery(queries.environmentTags(name));
  const may = useRightsOnEnvironment(name);
  const [edited, edit] = useState<{ of?: [string, string] }>();
  const [removed, remove] = useState<string>();
  return (
    <Card
      title="Tags"
      count={tags.data && Object.keys(tags.data.tags).length}
      actions={
        may("apply") && (
          <Button className="button small" onPress={() => edit({})}>
            New tag
          </Button>
        )
      }
    >
      <Loaded of={tags}>
        {({ tags }) =>
          Object.keys(tags).length === 0 ? (
            <p className="none">It has none. The list of environments finds and groups by tags.</p>
          ) : (
            <Table label="Tags" head={["Name", "Value", "Changed", ""]}>
              {Object.values(tags).map((tag) => (
                <tr key={tag.name}>
                  <th scope="row">{visible(tag.name)}</th>
                  <td className="what">{visible(tag.value)}</td>
                  <td>
                    <Time at={tag.modified} /> by {tag.editorLogin}
                  </td>
                  <td className="actions">
                    {may("apply") && (
                      <>
                        <Button
                          className="button small"
                          aria-label={`Change the tag ${tag.name}`}
                          onPress={() => edit({ of: [tag.name, tag.value] })}
                        >
                          Change
                        </Button>
                        <Button
                          className="button small"
                          aria-label={`Remove the tag ${tag.name}`}
                          onPress={() => remove(tag.name)}
                        >
                          Remove
                        </Button>
                      </>
                    )}
                  </td>
                </tr>
              ))}
            </Table>
          )
        }
      </Loaded>
      {edited && <TagDialog name={name} of={edited.of} onClose={() => edit(undefined)} />}
      {removed !== undefined && (
        <Confirm
          title={`Remove the tag ${removed}?`}
          action="Remove it"
          onClose={() => remove(undefined)}
          run={async () => {
            const names = { ...environmentPath(name), tagName: removed };
            await change("DELETE", `${ENVIRONMENT}/tags/{tagName}`, names);
            await client.invalidateQueries({ queryKey: ["environment-tags", name] });
          }}
        >
          <p>The environment and its values stay as they are.</p>
        </Confirm>
      )}
    </Card>
  );
}

export function Settings() {
  const name = useName();
  const client = useQueryClient();
  const navigate = useNavigate();
  const settings = useQuery(queries.environmentSettings(name));
  const may = useRightsOnEnvironment(name);
  const [asking, ask] = useState<"protect" | "delete">();
  const close = () => ask(undefined);
  const isProtected = Boolean(settings.data?.deletionProtected);
  useTitle("Tags and settings", `${name.project}/${name.env}`);
  const protect = async () => {
    await change("PATCH", `${ENVIRONMENT}/settings`, environmentPath(name), { deletionProtected: !isProtected });
    await client.invalidateQueries({ queryKey: ["environment-settings", name] });
  };
  const remove = async () => {
    await change("DELETE", ENVIRONMENT, environmentPath(name));
    await client.invalidateQueries({ queryKey: ["environments"] });
    await navigate({ ignoreBlocker: true, to: "/$org/-/environments", params: { org: name.org } });
  };
  const row = (title: string, about: string, button: ReactNode) => (
    <div className="list-row">
      <span>
        <span className="strong">{title}</span>
        <span className="faint"> {about}</span>
      </span>
      <span className="end">{button}</span>
    </div>
  );
  return (
    <>
      <Tags name={name} />
      <WhoMay org={name.org} kind="environment" name={`${name.project}/${name.env}`} isAdmin={may("admin")} />
      <Card title="Deletion">
        <Loaded of={settings} rows={2}>
          {() => (
            <>
              {row(
                isProtected ? "Protected." : "Not protected.",
                isProtected ? "It cannot be deleted until the protection is lifted." : "The role member is enough to delete it.",
                may("member") && (
                  <Button className="button small" onPress={() => ask("protect")}>
                    {isProtected ? "Lift the protection" : "Protect"}
                  </Button>
                ),
              )}
              {row(
                "Delete.",
                "The server keeps it for a time, in which it can be undeleted.",
                may("member") && (
                  <Act className="button small bad" onPress={() => ask("delete")} isOff={isProtected}>
                    Delete
                  </Act>
                ),
              )}
            </>
          )}
        </Loaded>
      </Card>
      {asking === "protect" && (
        <Confirm
          title={isProtected ? "Lift the protection?" : "Protect it from deletion?"}
          action={isProtected ? "Lift it" : "Protect it"}
          isDangerous={isProtected}
          onClose={close}
          run={protect}
        >
          <p>Its definition can be changed as before.</p>
        </Confirm>
      )}
      {asking === "delete" && (
        <Confirm title={`Delete ${name.project}/${name.env}?`} action="Delete it" onClose={close} run={remove}>
          <p>Stacks and environments that use it cannot read it any more, so their next updates fail.</p>
        </Confirm>
      )}
    </>
  );
}
