// A stack: what is around all of its pages, and its overview.

import { useQuery } from "@tanstack/react-query";
import { Link, Outlet, useParams } from "@tanstack/react-router";
import { Suspense, lazy, useEffect, useMemo, useRef, useState } from "react";
import { Button } from "react-aria-components";
import { address, reveal } from "../api/client";
import * as queries from "../api/queries";
import type { Stack, StackName } from "../api/queries";
import { duration, instant, kind, number, plain as unmarked, visible } from "../format";
import { Icon } from "../ui/icons";
import {
  Act,
  Badge,
  Card,
  Changes,
  Code,
  Copy,
  Empty,
  Facts,
  Failure,
  Loaded,
  Notice,
  Result,
  Table,
  Time,
  Top,
  Waiting,
  useNow,
  useTitle,
} from "../ui/parts";
import { MASK, at, hasSecret, openSecrets, textOf } from "../values";
import { useIsAdminOf, useLogin, useRightsOnStack } from "../rights";
import { HeldBy, HoldButton } from "./holds";
import { CancelUpdate, Wrote } from "./locks";
import { ProtectButton, ProtectedBy } from "./protection";

const Markdown = lazy(() => import("../ui/markdown"));

/** The part of an address that leads to environments. The CLI prints such addresses, so a project gives way. */
const OF_ENVIRONMENTS = "esc";

export const useStackName = (): StackName => useParams({ from: "/$org/$project/$stack" });

function RunningUpdate({ name, stack }: { name: StackName; stack: Stack }) {
  const now = useNow(1000);
  const may = useRightsOnStack(name);
  const login = useLogin();
  // The update that the person is asked about. It may end meanwhile.
  const [cancelled, cancel] = useState<string>();
  const operation = stack.currentOperation;
  // The dialog keeps its place when the update ends, so that it keeps what it says.
  return (
    <>
      {operation && (
        <div className="notice busy row">
          <Badge tone="busy" icon="running">
            {kind(operation.kind)} is running
          </Badge>
          <span>
            by <strong>{operation.author}</strong>, for {duration((now - instant(operation.started)) / 1000)}
          </span>
          <span className="faint">
            <Wrote wrote={operation.wrote} at={operation.lastWrite} />
          </span>
          <span className="spring" />
          <Link
            className="button"
            to="/$org/$project/$stack/updates/$version"
            params={{ ...name, version: String(stack.version + 1) }}
          >
            Watch it
          </Link>
          {(may("member") || (may("plan") && operation.author === login)) && (
            <Button className="button bad" onPress={() => cancel(stack.activeUpdate)}>
              Cancel
            </Button>
          )}
        </div>
      )}
      {cancelled !== undefined && (
        <CancelUpdate name={name} id={cancelled} onClose={() => cancel(undefined)} />
      )}
    </>
  );
}

export function StackPage() {
  const name = useStackName();
  const stack = useQuery(queries.stack(name));
  const isAdmin = useIsAdminOf(name);
  const may = useRightsOnStack(name);
  const { org, project } = name;
  return (
    <div className="page">
      <Top
        above={
          <Link to="/$org/-/stacks" params={{ org }} search={{ project }}>
            {project}
          </Link>
        }
        icon="stack"
        name={name.stack}
      >
        <Copy text={`${org}/${project}/${name.stack}`} label="Copy the name of the stack" />
        <span className="spring" />
        {isAdmin && stack.data && !stack.data.protection && <ProtectButton of={{ stack: name }} />}
        {stack.data && !stack.data.hold && may("member") && <HoldButton name={name} />}
      </Top>
      {stack.data ? (
        <>
          <RunningUpdate name={name} stack={stack.data} />
          <HeldBy name={name} by={stack.data.hold} canChange={may("member")} />
          <ProtectedBy of={{ stack: name }} by={stack.data.protection} canChange={isAdmin} />
          <nav className="tabs" aria-label="Stack">
            <Link to="/$org/$project/$stack" params={name} activeOptions={{ exact: true, includeSearch: false }}>
              Overview
            </Link>
            {project !== OF_ENVIRONMENTS && (
              <>
                <Link to="/$org/$project/$stack/resources" params={name} activeOptions={{ includeSearch: false }}>
                  Resources
                </Link>
                <Link to="/$org/$project/$stack/updates" params={name} activeOptions={{ includeSearch: false }}>
                  Activity
                </Link>
                <Link to="/$org/$project/$stack/versions" params={name} activeOptions={{ includeSearch: false }}>
                  Versions
                </Link>
              </>
            )}
            <Link to="/$org/$project/$stack/settings/options" params={name}>
              Settings
            </Link>
          </nav>
          {project === OF_ENVIRONMENTS && (
            <Notice tone="warn">
              In a project with the name {OF_ENVIRONMENTS}, the addresses of these tabs are of environments: Resources,
              Activity and Versions. Use <code>statewright stack resources</code>, <code>pulumi stack history</code> and{" "}
              <code>pulumi stack export</code>.
            </Notice>
          )}
          <Outlet />
        </>
      ) : stack.error ? (
        <Failure error={stack.error} again={() => void stack.refetch()} />
      ) : (
        <Waiting rows={6} />
      )}
    </div>
  );
}

/** Opens a secret of a stack, which the audit trail records. */
async function decrypted(name: StackName, sealed: string, signal: AbortSignal): Promise<unknown> {
  const names = { orgName: name.org, projectName: name.project, stackName: name.stack };
  const url = address("/api/stacks/{orgName}/{projectName}/{stackName}/decrypt", names);
  const answer = (await reveal(url, { ciphertext: sealed }, signal)) as { plaintext: string };
  const bytes = Uint8Array.from(atob(answer.plaintext), (letter) => letter.charCodeAt(0));
  return JSON.parse(new TextDecoder().decode(bytes)) as unknown;
}

/** Opens one secret, of which it gets the ciphertext and the place in the value. */
export type OpenSecret = (sealed: string, pointer: string, signal: AbortSignal) => Promise<unknown>;

/** A value whose secrets are masked until a person asks for them. */
export function Value({ value, open }: { value: unknown; open?: OpenSecret }) {
  const [opened, setOpened] = useState<{ of: unknown; value: unknown }>();
  const [isOpening, setOpening] = useState(false);
  const [error, setError] = useState<unknown>();
  const asking = useRef<AbortController>(undefined);
  // Who left the page does not ask any more.
  useEffect(() => () => asking.current?.abort(), []);
  const isSecret = hasSecret(value);
  // Another value at its place is masked again.
  const plain = opened?.of === value ? opened : undefined;
  const show = async (open: OpenSecret) => {
    const { signal } = (asking.current = new AbortController());
    setOpening(true);
    setError(undefined);
    const found = await openSecrets(value, (sealed, pointer) => open(sealed, pointer, signal), signal);
    if (signal.aborted) return;
    if (found.count > 0) setOpened({ of: value, value: found.value });
    setError(found.error);
    setOpening(false);
  };
  const hide = () => {
    setOpened(undefined);
    setError(undefined);
  };
  return (
    <div className="value">
      <Code className={isSecret && !plain ? "masked" : ""} value={plain ? plain.value : value} />
      {isSecret && (plain || open) && (
        <Act className="button small" onPress={() => (plain ? hide() : open && void show(open))} isOff={isOpening}>
          <Icon name="eye" /> {plain ? "Hide" : "Show"}
        </Act>
      )}
      {!isSecret && textOf(value) !== "" && <Copy text={textOf(value)} label="Copy the value" />}
      {error !== undefined && <Failure error={error} />}
    </div>
  );
}

/** The output that describes the stack: Markdown, in which `${outputs.NAME}` stands for another output. */
const README = "readme";

/** Characters that the values of other outputs add to it, at most. After that, they are not put in. */
const ADDED_MAX = 100_000;

/** The text of the README; `undefined` if there is none, or it is a secret. */
function readmeOf(outputs: Record<string, unknown>): string | undefined {
  const text = outputs[README];
  if (typeof text !== "string" || text.trim() === "") return undefined;
  let left = ADDED_MAX;
  return text.replace(/\$\{outputs\.([^{}]{1,200})\}/g, (whole, path: string) => {
    const value = left < 0 ? undefined : at(outputs, path);
    if (value === undefined) return whole;
    const added = textOf(value);
    left -= added.length;
    return left < 0 ? whole : added;
  });
}

function Readme({ name, version }: { name: StackName; version: number }) {
  const outputs = useQuery(queries.stackOutputs(name, version));
  const text = useMemo(() => readmeOf((outputs.data?.outputs ?? {}) as Record<string, unknown>), [outputs.data]);
  if (text === undefined) return null;
  return (
    <Card title="README">
      <div className="pad">
        <Suspense fallback={<Waiting />}>
          <Markdown text={text} />
        </Suspense>
      </div>
    </Card>
  );
}

function Outputs({ name, version }: { name: StackName; version: number }) {
  const outputs = useQuery(queries.stackOutputs(name, version));
  const may = useRightsOnStack(name);
  return (
    <Card title="Outputs" count={outputs.data ? Object.keys(outputs.data.outputs ?? {}).length : undefined}>
      <Loaded of={outputs}>
        {(found) => {
          const entries = Object.entries((found.outputs ?? {}) as Record<string, unknown>);
          const provider = found.secretsProviders as { type?: string } | null | undefined;
          // A passphrase or another key is not of this server.
          const isOpenable = provider?.type === "service" && may("plan");
          const open: OpenSecret = (sealed, _, signal) => decrypted(name, sealed, signal);
          if (entries.length === 0) return <Empty title="This stack has no outputs" />;
          return (
            <>
              <Table label="Outputs" head={["Name", "Value"]}>
                {entries.map(([key, value]) => (
                  <tr key={key}>
                    <th scope="row">
                      <code>{visible(key)}</code>
                    </th>
                    <td>
                      {key === README && readmeOf(found.outputs as Record<string, unknown>) !== undefined ? (
                        <span className="faint">The text below</span>
                      ) : (
                        <Value value={value} open={isOpenable ? open : undefined} />
                      )}
                    </td>
                  </tr>
                ))}
              </Table>
              {entries.some(([, value]) => hasSecret(value)) && (
                <p className="foot">
                  {isOpenable
                    ? "Showing a secret is recorded in the audit trail."
                    : provider?.type === "service"
                      ? "Showing a secret needs the role plan on this stack."
                      : "The secrets of this stack have a key that this server does not have."}
                </p>
              )}
            </>
          );
        }}
      </Loaded>
    </Card>
  );
}

interface ConfigValue {
  string: string;
  secret: boolean;
}

function Configuration({ config }: { config: Record<string, ConfigValue> }) {
  const entries = Object.entries(config);
  return (
    <Card title="Configuration of the last update" count={entries.length}>
      {entries.length === 0 ? (
        <p className="none">It had none.</p>
      ) : (
        <Table label="Configuration" head={["Key", "Value"]}>
          {entries.map(([key, value]) => (
            <tr key={key}>
              <th scope="row">
                <code>{visible(key)}</code>
              </th>
              <td>
                <Code className={value.secret ? "masked" : ""} value={value.secret ? MASK : value.string} />
              </td>
            </tr>
          ))}
        </Table>
      )}
    </Card>
  );
}

const PERMISSIONS: Record<number, string> = { 0: "none", 101: "read", 102: "write", 103: "admin", 104: "creator" };

function Access({ name }: { name: StackName }) {
  const people = useQuery(queries.collaborators(name));
  const isAdmin = useIsAdminOf(name);
  if (people.error) return null;
  return (
    <Card title="Who may use it" count={people.data?.users.length}>
      <Loaded of={people}>
        {({ users }) => (
          <ul className="plain-list">
            {users.slice(0, 20).map(({ user, permission }) => (
              <li key={user.githubLogin} className="list-row">
                <Icon name="person" />
                {isAdmin ? (
                  <Link
                    to="/$org/-/grants"
                    params={{ org: name.org }}
                    search={{ user: user.githubLogin, stack: `${name.project}/${name.stack}` }}
                    title={`Why ${user.githubLogin} may use it`}
                  >
                    {user.githubLogin}
                  </Link>
                ) : (
                  <span>{user.githubLogin}</span>
                )}
                <span className="end faint">{PERMISSIONS[permission] ?? permission}</span>
              </li>
            ))}
            {users.length > 20 && <li className="none">and {number(users.length - 20)} more</li>}
          </ul>
        )}
      </Loaded>
    </Card>
  );
}

export function StackOverview() {
  const name = useStackName();
  const stack = useQuery(queries.stack(name)).data;
  useTitle(`${name.project}/${name.stack}`);
  if (!stack) return null;
  return <OverviewOf name={name} stack={stack} />;
}

function OverviewOf({ name, stack }: { name: StackName; stack: Stack }) {
  const last = useQuery({ ...queries.latest(name, stack.version), enabled: stack.version > 0 });
  const tags = Object.entries(stack.tags);
  return (
    <div className="main-and-side">
      <div>
        <Outputs name={name} version={stack.version} />
        <Readme name={name} version={stack.version} />
        {last.data && <Configuration config={last.data.info.config as Record<string, ConfigValue>} />}
      </div>
      <div>
        <Card title="Last update">
          {stack.version === 0 ? (
            <p className="none">It was never updated.</p>
          ) : (
            <Loaded of={last}>
              {(update) => (
                <div className="pad">
                  <p className="row">
                    <Result result={queries.resultOf(update.info)} />
                    <Link
                      to="/$org/$project/$stack/updates/$version"
                      params={{ ...name, version: String(update.version) }}
                    >
                      {kind(update.info.kind)} {update.version}
                    </Link>
                  </p>
                  {update.info.message && <p className="faint">{unmarked(update.info.message)}</p>}
                  <Facts
                    of={[
                      ["By", update.requestedBy.githubLogin],
                      ["Ended", <Time key="t" at={update.info.endTime} />],
                      ["Took", duration(update.info.endTime - update.info.startTime)],
                      ["Changes", <Changes key="c" counts={update.info.resourceChanges} />],
                      ["Resources", number(update.info.resourceCount ?? 0)],
                    ]}
                  />
                </div>
              )}
            </Loaded>
          )}
        </Card>
        <Card title="Tags" count={tags.length}>
          {tags.length === 0 ? (
            <p className="none">It has none.</p>
          ) : (
            <div className="pad">
              <Facts of={tags.map(([key, value]) => [key, visible(value)])} />
            </div>
          )}
        </Card>
        <Access name={name} />
        <Card title="Use it">
          <div className="pad">
            <pre className="code" tabIndex={0}>{`pulumi stack select ${name.org}/${name.project}/${name.stack}`}</pre>
          </div>
        </Card>
      </div>
    </div>
  );
}
