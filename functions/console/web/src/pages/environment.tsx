// One environment: its definition, opened values, revisions, tags and settings.

import { keepPreviousData, useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, Outlet, useBlocker, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { Button, Input, Label, Menu, MenuItem, MenuTrigger, Popover, TextField } from "react-aria-components";
import { ApiError, type Definition, address, change, parse, readDefinition, sendDefinition, text } from "../api/client";
import * as queries from "../api/queries";
import type { EnvironmentName, Revision } from "../api/queries";
import {
  type Checked,
  type Diagnostic,
  type Leaf,
  type Line,
  type Properties,
  Seals,
  hasSealed,
  imports,
  leaves,
  lines,
} from "../definitions";
import { count, number, visible } from "../format";
import { Editor, type Field, goTo } from "../ui/editor";
import { Icon } from "../ui/icons";
import {
  Badge,
  Card,
  Code,
  Compare,
  Confirm,
  Copy,
  Empty,
  Facts,
  Failure,
  Loaded,
  Masked,
  More,
  Notice,
  Search,
  Table,
  Time,
  Waiting,
  useTitle,
} from "../ui/parts";
import { MASK } from "../values";

const ROUTE = "/$org/esc/$project/$env";
const { ENVIRONMENT, environmentPath } = queries;

function useName(): EnvironmentName {
  const { org, project, env } = useParams({ from: ROUTE });
  return useMemo(() => ({ org, project, env }), [org, project, env]);
}

/** Everything that depends on the definition. */
function useReadAgain(name: EnvironmentName) {
  const client = useQueryClient();
  return () =>
    Promise.all(
      ["definition", "revisions", "revision-tags"].map((key) => client.invalidateQueries({ queryKey: [key, name] })),
    );
}

export function EnvironmentPage() {
  const name = useName();
  return (
    <div className="page">
      <div className="crumbs">
        <Link to="/$org/-/environments" params={{ org: name.org }} search={{ project: name.project }}>
          {name.project}
        </Link>
        <span aria-hidden="true">/</span>
      </div>
      <div className="title-row">
        <h1>
          <Icon name="environment" /> {name.env}
        </h1>
      </div>
      <nav className="tabs" aria-label="Environment">
        <Link to={ROUTE} params={name} activeOptions={{ exact: true, includeSearch: false }}>
          Definition
        </Link>
        <Link to={`${ROUTE}/values`} params={name}>
          Opened values
        </Link>
        <Link to={`${ROUTE}/revisions`} params={name} activeOptions={{ includeSearch: false }}>
          Revisions
        </Link>
        <Link to={`${ROUTE}/settings`} params={name}>
          Tags and settings
        </Link>
      </nav>
      <Outlet />
    </div>
  );
}

/** Equal lines that are shown around those that differ. */
const AROUND = 3;

function Lines({ of }: { of: Line[] }) {
  const near = useMemo(() => {
    const shown = new Set<number>();
    for (const [index, { how }] of of.entries()) {
      if (how === "same") continue;
      for (let at = index - AROUND; at <= index + AROUND; at++) shown.add(at);
    }
    return shown;
  }, [of]);
  return (
    <div className="text-lines" role="region" aria-label="Lines that differ" tabIndex={0}>
      <ol>
        {of.map((line, index) =>
          near.has(index) ? (
            <li key={index} className={line.how}>
              <span className="text-number" aria-hidden="true">
                {line.number}
              </span>
              <span className="sign" aria-hidden="true">
                {{ same: " ", added: "+", removed: "−" }[line.how]}
              </span>
              {line.how !== "same" && <span className="unseen">{line.how}: </span>}
              <code>{visible(line.text)}</code>
            </li>
          ) : near.has(index - 1) || (index === 0 && near.size > 0) ? (
            <li key={index} className="skipped">
              …
            </li>
          ) : null,
        )}
      </ol>
    </div>
  );
}

function Problems({ of, onGo }: { of: Diagnostic[]; onGo: (problem: Diagnostic) => void }) {
  return (
    <ul className="plain-list">
      {of.map((problem, index) => {
        const { environment, begin } = problem.range;
        const tone = problem.severity === "error" ? "bad" : "warn";
        const isHere = environment.startsWith("<");
        const where = isHere ? `Line ${begin.line}` : `${visible(environment)}, line ${begin.line}`;
        return (
          <li key={index} className="list-row">
            <Badge tone={tone} icon={tone === "bad" ? "cross" : "warning"}>
              {problem.severity === "error" ? "Error" : "Warning"}
            </Badge>
            {isHere && begin.line > 0 ? (
              <Button className="link" onPress={() => onGo(problem)}>
                {where}
              </Button>
            ) : (
              <span className="faint">{where}</span>
            )}
            <span className="whole">{visible(problem.summary)}</span>
          </li>
        );
      })}
    </ul>
  );
}

/** Values that are listed beside a definition. */
const KNOWN_MAX = 100;

function Checks({
  of,
  known,
  error,
  isChecking,
  onCheck,
  onGo,
}: {
  of: Checked | undefined;
  /** What the last definition that could be read gives. */
  known: Leaf[];
  error: unknown;
  isChecking: boolean;
  onCheck: (() => void) | undefined;
  onGo: (problem: Diagnostic) => void;
}) {
  const problems = [...(of?.diagnostics ?? [])].sort((a, b) => a.range.begin.line - b.range.begin.line);
  return (
    <>
      <Card
        title="Checks"
        count={of && problems.length > 0 ? problems.length : undefined}
        actions={
          <Button className="button small" onPress={onCheck} isDisabled={!onCheck || isChecking}>
            Check
          </Button>
        }
      >
        <div aria-live="polite">
          {error ? (
            <div className="pad">
              <Failure error={error} again={onCheck} />
            </div>
          ) : !of ? (
            isChecking ? (
              <Waiting rows={1} />
            ) : (
              <p className="none">The server checks what you edit.</p>
            )
          ) : problems.length === 0 ? (
            <p className="pad">
              <Badge tone="good" icon="check">
                No errors
              </Badge>
            </p>
          ) : (
            <Problems of={problems} onGo={onGo} />
          )}
        </div>
      </Card>
      {of && known.length > 0 && (
        <Card title="Values before opening" count={known.length}>
          <ul className="plain-list known" tabIndex={0} aria-label="Values before opening">
            {known.slice(0, KNOWN_MAX).map((leaf) => (
              <li key={leaf.path} className="list-row">
                <code className="strong">{visible(leaf.path)}</code>
                {leaf.isSecret ? (
                  <code className="masked">{MASK}</code>
                ) : leaf.isUnknown ? (
                  <span className="faint">known when opened</span>
                ) : (
                  <Code value={leaf.value} />
                )}
              </li>
            ))}
            {known.length > KNOWN_MAX && <li className="none">and {number(known.length - KNOWN_MAX)} more</li>}
          </ul>
        </Card>
      )}
    </>
  );
}

function Imports({ org, of }: { org: string; of: string }) {
  const found = useMemo(() => imports(of), [of]);
  if (found.length === 0) return null;
  return (
    <Card title="Imports" count={found.length}>
      <ul className="plain-list">
        {found.map((one, index) => (
          <li key={index} className="list-row">
            <Icon name="environment" />
            <Link to={ROUTE} params={{ org, project: one.project, env: one.env }}>
              {one.text}
            </Link>
          </li>
        ))}
      </ul>
    </Card>
  );
}

function Now({ name, revision }: { name: EnvironmentName; revision: number }) {
  const revisions = useInfiniteQuery(queries.revisions(name));
  const one = revisions.data?.pages[0]?.find((one) => one.number === revision);
  return (
    <>
      <Card title="Now">
        <div className="pad">
          <Facts
            of={[
              [
                "Revision",
                <Link key="r" to={`${ROUTE}/revisions`} params={name}>
                  {number(revision)}
                </Link>,
              ],
              ["Written", <Time key="w" at={one?.created} />],
              ["By", one?.creatorLogin ?? "–"],
            ]}
          />
        </div>
      </Card>
      <Card title="Use it">
        <div className="pad">
          <pre className="code" tabIndex={0}>{`pulumi config env add ${name.project}/${name.env}`}</pre>
        </div>
      </Card>
    </>
  );
}

interface Draft {
  text: string;
  /** The text before the first change. */
  original: string;
  of: Definition;
  /** Whether it has its secrets in plain text. */
  isPlain: boolean;
}

/** Somebody else saved while this person edited. */
function Overtaken({
  revision,
  difference,
  isBusy,
  onTheirs,
  onMine,
}: {
  revision: number;
  difference: Line[];
  isBusy: boolean;
  onTheirs: () => void;
  onMine: () => void;
}) {
  return (
    <div className="notice warn" role="alert">
      <p>
        <strong>Somebody saved revision {number(revision)} while you edited.</strong> Yours is not saved, and nothing of
        it is lost. These lines differ between revision {number(revision)} and your text. You can go on editing until
        only your own changes are left.
      </p>
      <Lines of={difference} />
      <div className="row">
        <Button className="button" onPress={onTheirs} isDisabled={isBusy}>
          Drop mine, show revision {number(revision)}
        </Button>
        <Button className="button bad" onPress={onMine} isDisabled={isBusy}>
          Save mine over revision {number(revision)}
        </Button>
      </div>
    </div>
  );
}

/** How long a person pauses before a definition is checked. */
const PAUSE = 1000;

function Edit({ name, definition }: { name: EnvironmentName; definition: Definition }) {
  const client = useQueryClient();
  const readAgain = useReadAgain(name);
  const field: Field = useRef(null);
  const [seals] = useState(() => new Seals());
  const [kept, setDraft] = useState<Draft>();
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const [isSaved, setSaved] = useState(false);
  const [asked, ask] = useState<string>();

  const sealed = useMemo(() => seals.hide(definition.text), [seals, definition.text]);
  const isDirty = kept !== undefined && kept.text !== kept.original;
  // What was only looked at gives way to a newer revision.
  const draft = isDirty || kept?.of.etag === definition.etag ? kept : undefined;
  const shown = draft?.text ?? sealed;
  const isPlain = draft?.isPlain ?? false;
  const isOvertaken = isDirty && kept.of.etag !== definition.etag;
  const sent = isPlain ? shown : seals.restore(shown);
  const difference = useMemo(() => (isOvertaken ? lines(sealed, shown) : []), [isOvertaken, sealed, shown]);

  useEffect(() => {
    if (!isDirty) return;
    const timer = setTimeout(() => ask(sent), PAUSE);
    return () => clearTimeout(timer);
  }, [isDirty, sent]);
  const check = useQuery({
    ...queries.check(name.org, asked ?? ""),
    enabled: asked !== undefined,
    placeholderData: keepPreviousData,
  });
  const checked = asked === undefined ? undefined : check.data;
  const marks = useMemo(() => {
    const found = new Map<number, "bad" | "warn">();
    for (const { range, severity } of checked?.diagnostics ?? []) {
      const { line } = range.begin;
      if (range.environment.startsWith("<") && found.get(line) !== "bad") {
        found.set(line, severity === "error" ? "bad" : "warn");
      }
    }
    return found;
  }, [checked]);
  // A definition that cannot be read, such as one with a half of a reference, has no values.
  const [properties, setProperties] = useState<Properties>();
  useEffect(() => {
    if (checked?.properties) setProperties(checked.properties);
  }, [checked]);
  const known = useMemo(() => leaves(properties), [properties]);
  const names = useMemo(() => known.map((leaf) => leaf.path), [known]);

  const blocker = useBlocker({
    // Filters and versions in the address of the same page keep the text.
    shouldBlockFn: ({ current, next }) => isDirty && current.pathname !== next.pathname,
    enableBeforeUnload: () => isDirty,
    withResolver: true,
  });

  const edit = (text: string) => {
    setSaved(false);
    setDraft(draft ? { ...draft, text } : { text, original: sealed, of: definition, isPlain: false });
  };
  const run = async (what: () => Promise<void>) => {
    setBusy(true);
    setError(undefined);
    try {
      await what();
    } catch (error) {
      setError(error);
    }
    setBusy(false);
  };
  const drop = () => {
    setDraft(undefined);
    setError(undefined);
    ask(undefined);
  };
  const save = (over: Definition) =>
    run(async () => {
      try {
        await sendDefinition("PATCH", address(ENVIRONMENT, environmentPath(name)), sent, { etag: over.etag });
      } catch (error) {
        if (!(error instanceof ApiError) || error.reason !== "environment_changed") {
          if (error instanceof ApiError && error.reason === "environment_invalid") ask(sent);
          throw error;
        }
        // The notice about the newer revision comes with it.
        await client.refetchQueries({ queryKey: queries.definition(name).queryKey });
        return;
      }
      await readAgain();
      setDraft(undefined);
      setSaved(true);
    });
  const decrypt = () =>
    run(async () => {
      const plain = await readDefinition(address(`${ENVIRONMENT}/decrypt`, environmentPath(name)));
      if (plain.etag !== definition.etag) {
        await client.refetchQueries({ queryKey: queries.definition(name).queryKey });
      }
      setDraft({ text: plain.text, original: plain.text, of: plain, isPlain: true });
    });
  const canSave = isDirty && !isOvertaken && !isBusy;

  return (
    <div className="main-and-side">
      <div>
        {isOvertaken && (
          <Overtaken
            revision={definition.revision}
            difference={difference}
            isBusy={isBusy}
            onTheirs={drop}
            onMine={() => void save(definition)}
          />
        )}
        {error !== undefined && <Failure error={error} />}
        <Card
          title="Definition"
          actions={
            <>
              {isSaved && !isDirty && (
                <Badge tone="good" icon="check">
                  Saved as revision {number(definition.revision)}
                </Badge>
              )}
              {isPlain && !isDirty && (
                <Button className="button" onPress={drop}>
                  Hide secrets
                </Button>
              )}
              {!isPlain && !isDirty && hasSealed(definition.text) && (
                <Button className="button" onPress={() => void decrypt()} isDisabled={isBusy}>
                  <Icon name="eye" /> Decrypt
                </Button>
              )}
              {isDirty && (
                <Button className="button" onPress={drop} isDisabled={isBusy}>
                  Drop changes
                </Button>
              )}
              <Button className="button primary" onPress={() => void save(definition)} isDisabled={!canSave}>
                Save
              </Button>
            </>
          }
        >
          <Editor
            label="Definition"
            field={field}
            value={shown}
            onChange={isBusy ? undefined : edit}
            onSave={() => canSave && void save(definition)}
            marks={marks}
            names={names}
          />
          <p className="foot">
            {isPlain
              ? "The secrets are in plain text, which the audit trail has recorded. Saving seals them again."
              : hasSealed(definition.text)
                ? `${MASK} stands for a sealed secret, and is saved as it was. Decrypting is recorded in the audit trail.`
                : "Write a secret as fn::secret: VALUE. Saving seals it."}
          </p>
        </Card>
      </div>
      <div>
        <Checks
          of={checked}
          known={known}
          error={asked === undefined || check.data ? undefined : check.error}
          isChecking={check.isFetching}
          onCheck={asked === sent && check.data && !check.isPlaceholderData ? undefined : () => ask(sent)}
          onGo={({ range }) => goTo(field, range.begin.line, range.begin.column)}
        />
        <Imports org={name.org} of={shown} />
        <Now name={name} revision={definition.revision} />
      </div>
      {blocker.status === "blocked" && (
        <Confirm
          title="Leave without saving?"
          action="Leave"
          onClose={blocker.reset}
          run={async () => {
            blocker.proceed();
          }}
        >
          <p>Your changes to the definition are not saved, and leaving drops them.</p>
        </Confirm>
      )}
    </div>
  );
}

function useRestore(name: EnvironmentName) {
  const readAgain = useReadAgain(name);
  return async (revision: number) => {
    const names = environmentPath(name);
    const url = address(ENVIRONMENT, names);
    const old = await readDefinition(address(`${ENVIRONMENT}/versions/{version}`, { ...names, version: String(revision) }));
    const { etag } = await readDefinition(url);
    await sendDefinition("PATCH", url, old.text, { etag });
    await readAgain();
  };
}

function Restore({ name, revision, onClose }: { name: EnvironmentName; revision: number; onClose: () => void }) {
  const restore = useRestore(name);
  const navigate = useNavigate();
  return (
    <Confirm
      title={`Make revision ${revision} the next one?`}
      action="Restore it"
      onClose={onClose}
      run={async () => {
        await restore(revision);
        await navigate({ to: `${ROUTE}/revisions`, params: name });
      }}
    >
      <p>
        The definition becomes what it was in revision {revision}, as a new revision. All revisions stay. Stacks that
        use this environment get its values with their next update.
      </p>
    </Confirm>
  );
}

function OldRevision({ name, revision }: { name: EnvironmentName; revision: number }) {
  const old = useQuery(queries.definition(name, revision));
  const field: Field = useRef(null);
  const [seals] = useState(() => new Seals());
  const [plain, setPlain] = useState<string>();
  const [error, setError] = useState<unknown>();
  const [isRestoring, setRestoring] = useState(false);
  const decrypt = async () => {
    const names = { ...environmentPath(name), version: String(revision) };
    setError(undefined);
    try {
      setPlain((await readDefinition(address(`${ENVIRONMENT}/versions/{version}/decrypt`, names))).text);
    } catch (error) {
      setError(error);
    }
  };
  return (
    <>
      <InItsPlace asked={revision} found={old.data} />
      {error !== undefined && <Failure error={error} />}
      <Card
        title={`Definition in revision ${revision}`}
        actions={
          <>
            {old.data && hasSealed(old.data.text) && (
              <Button className="button" onPress={() => (plain === undefined ? void decrypt() : setPlain(undefined))}>
                <Icon name="eye" /> {plain === undefined ? "Decrypt" : "Hide secrets"}
              </Button>
            )}
            <Button
              className="button"
              onPress={() => setRestoring(true)}
              isDisabled={old.data?.revision !== revision}
            >
              Restore
            </Button>
            <Link className="button" to={ROUTE} params={name} search={{}}>
              To the current one
            </Link>
          </>
        }
      >
        <Loaded of={old} rows={8}>
          {({ text }) => (
            <Editor label={`Definition in revision ${revision}`} field={field} value={plain ?? seals.hide(text)} />
          )}
        </Loaded>
        <p className="foot">
          {plain === undefined
            ? `${MASK} stands for a sealed secret. Decrypting is recorded in the audit trail.`
            : "The secrets are in plain text, which the audit trail has recorded."}
        </p>
      </Card>
      {isRestoring && <Restore name={name} revision={revision} onClose={() => setRestoring(false)} />}
    </>
  );
}

export function DefinitionPage() {
  const name = useName();
  const { version } = useSearch({ from: `${ROUTE}/` });
  const definition = useQuery({ ...queries.definition(name), enabled: version === undefined });
  useTitle(`${name.project}/${name.env}`, "Environments");
  if (version !== undefined) return <OldRevision key={version} name={name} revision={Number(version)} />;
  return (
    <Loaded of={definition} rows={8}>
      {(found) => <Edit key={`${name.org}/${name.project}/${name.env}`} name={name} definition={found} />}
    </Loaded>
  );
}

/** Rows that are drawn at first, and with each press of the button. */
const SHOWN = 200;

function Origin({ name, from }: { name: EnvironmentName; from: Leaf["from"] }) {
  if (!from || from.line === 0) return <span className="faint">–</span>;
  const [project, env] = from.environment.split("@")[0]?.split("/") ?? [];
  if (!project || !env) return <span className="faint">{visible(from.environment)}</span>;
  if (project === name.project && env === name.env) return <>line {from.line}</>;
  return (
    <>
      <Link className="underlined" to={ROUTE} params={{ org: name.org, project, env }}>
        {from.environment}
      </Link>
      , line {from.line}
    </>
  );
}

function OpenedValues({ name, of, onClose }: { name: EnvironmentName; of: Leaf[]; onClose: () => void }) {
  const [typed, setTyped] = useState("");
  const [max, setMax] = useState(SHOWN);
  const found = of.filter((leaf) => leaf.path.toLowerCase().includes(typed.trim().toLowerCase()));
  return (
    <Card
      title="Opened values"
      count={of.length}
      actions={
        <Button className="button small" onPress={onClose}>
          <Icon name="cross" /> Close
        </Button>
      }
    >
      {of.length > 10 && (
        <div className="filters" role="search">
          <Search label="Filter by path" value={typed} onChange={setTyped} />
        </div>
      )}
      {of.length === 0 ? (
        <Empty title="This environment has no values" />
      ) : found.length === 0 ? (
        <Empty icon="search" title="No path has these letters" />
      ) : (
        <Table label="Opened values" head={["Path", "Value", "Written in"]}>
          {found.slice(0, max).map((leaf) => (
            <tr key={leaf.path}>
              <th scope="row">
                <code>{visible(leaf.path)}</code>
              </th>
              <td>
                {leaf.isSecret ? (
                  <Masked value={leaf.value} />
                ) : (
                  <div className="value">
                    <Code value={leaf.value} />
                    {typeof leaf.value === "string" && leaf.value !== "" && (
                      <Copy text={leaf.value} label={`Copy ${leaf.path}`} />
                    )}
                  </div>
                )}
              </td>
              <td>
                <Origin name={name} from={leaf.from} />
              </td>
            </tr>
          ))}
        </Table>
      )}
      {found.length > max && <More isLoading={false} onPress={() => setMax(max + SHOWN)} />}
    </Card>
  );
}

export function Values() {
  const name = useName();
  const [found, setFound] = useState<Leaf[]>();
  const [error, setError] = useState<unknown>();
  const [isOpening, setOpening] = useState(false);
  useTitle("Opened values", `${name.project}/${name.env}`);
  const open = async () => {
    setOpening(true);
    setError(undefined);
    try {
      const names = environmentPath(name);
      const { id } = (await change("POST", `${ENVIRONMENT}/open`, names)) as { id: string };
      const url = address(`${ENVIRONMENT}/open/{openSessionID}`, { ...names, openSessionID: id });
      const { properties } = parse(await text(url)) as { properties?: Properties };
      setFound(leaves(properties));
    } catch (error) {
      setError(error);
    }
    setOpening(false);
  };
  return (
    <>
      {error !== undefined && <Failure error={error} />}
      {found ? (
        <OpenedValues name={name} of={found} onClose={() => setFound(undefined)} />
      ) : (
        <section className="card">
          <Empty icon="lock" title="The values are not open">
            <p>Opening evaluates the definition with its imports and providers, and decrypts its secrets.</p>
            <p>It is recorded in the audit trail. Secrets stay masked until you show each.</p>
            <p>
              <Button className="button primary" onPress={() => void open()} isDisabled={isOpening}>
                {isOpening ? "Opening" : "Open the values"}
              </Button>
            </p>
          </Empty>
        </section>
      )}
    </>
  );
}

/** What the server gives for a retracted revision is another one. */
function InItsPlace({ asked, found }: { asked: number; found: Definition | undefined }) {
  if (!found || found.revision === asked) return null;
  return (
    <Notice tone="warn">
      Revision {asked} is retracted. Revision {found.revision} is shown in its place.
    </Notice>
  );
}

function Comparison({ name, from, to }: { name: EnvironmentName; from: number; to: number }) {
  const old = useQuery(queries.definition(name, from));
  const next = useQuery(queries.definition(name, to));
  const difference = useMemo(() => {
    if (!old.data || !next.data) return undefined;
    const seals = new Seals();
    return lines(seals.hide(old.data.text), seals.hide(next.data.text));
  }, [old.data, next.data]);
  const error = old.error ?? next.error;
  const counted = (how: Line["how"]) => difference?.filter((line) => line.how === how).length ?? 0;
  return (
    <Card
      title={`Revision ${from} compared with revision ${to}`}
      actions={
        <Link className="button small" to={`${ROUTE}/revisions`} params={name} search={{}}>
          <Icon name="cross" /> Close
        </Link>
      }
    >
      {error ? (
        <Failure error={error} />
      ) : !difference ? (
        <Waiting />
      ) : counted("added") + counted("removed") === 0 ? (
        <>
          <InItsPlace asked={from} found={old.data} />
          <InItsPlace asked={to} found={next.data} />
          <Empty icon="check" title="Nothing differs" />
        </>
      ) : (
        <>
          <InItsPlace asked={from} found={old.data} />
          <InItsPlace asked={to} found={next.data} />
          <p className="row pad">
            {counted("added") > 0 && <Badge tone="good">{count(counted("added"), "line")} added</Badge>}
            {counted("removed") > 0 && <Badge tone="bad">{count(counted("removed"), "line")} removed</Badge>}
            <span className="faint">Secrets are masked. Sealed again, one may have the same value.</span>
          </p>
          <Lines of={difference} />
        </>
      )}
    </Card>
  );
}

function TagRevision({ name, revision, onClose }: { name: EnvironmentName; revision: number; onClose: () => void }) {
  const tags = useQuery(queries.revisionTags(name));
  const readAgain = useReadAgain(name);
  const [typed, setTyped] = useState("");
  const tag = typed.trim();
  const moved = tags.data?.tags.find((one) => one.name === tag);
  const add = async () => {
    const names = environmentPath(name);
    if (moved) {
      await change("PATCH", `${ENVIRONMENT}/versions/tags/{tagName}`, { ...names, tagName: tag }, { revision });
    } else {
      await change("POST", `${ENVIRONMENT}/versions/tags`, names, { name: tag, revision });
    }
    await readAgain();
  };
  return (
    <Confirm
      title={`Tag revision ${revision}`}
      action={moved ? "Move the tag" : "Add the tag"}
      isDangerous={false}
      onClose={onClose}
      run={add}
    >
      <TextField className="entry" value={typed} onChange={setTyped} autoFocus isRequired>
        <Label>Tag</Label>
        <Input />
      </TextField>
      <p className="faint">
        {moved
          ? `Revision ${moved.revision} has this tag now. What imports it by the tag gets revision ${revision}.`
          : `Imports can name it: ${name.project}/${name.env}@${tag || "TAG"}`}
      </p>
    </Confirm>
  );
}

type Asking = { what: "tag" | "restore" | "retract"; revision: number } | { what: "untag"; revision: number; tag: string };

function Asked({ name, of, onClose }: { name: EnvironmentName; of: Asking; onClose: () => void }) {
  const readAgain = useReadAgain(name);
  const names = environmentPath(name);
  const { revision } = of;
  if (of.what === "tag") return <TagRevision name={name} revision={revision} onClose={onClose} />;
  if (of.what === "restore") return <Restore name={name} revision={revision} onClose={onClose} />;
  if (of.what === "untag") {
    const { tag } = of;
    const remove = async () => {
      await change("DELETE", `${ENVIRONMENT}/versions/tags/{tagName}`, { ...names, tagName: tag });
      await readAgain();
    };
    return (
      <Confirm title={`Remove the tag ${tag}?`} action="Remove it" onClose={onClose} run={remove}>
        <p>Definitions that import this environment by the tag cannot be opened any more.</p>
      </Confirm>
    );
  }
  const retract = async (reason: string) => {
    await change("POST", `${ENVIRONMENT}/versions/{version}/retract`, { ...names, version: String(revision) }, { reason });
    await readAgain();
  };
  return (
    <Confirm title={`Retract revision ${revision}?`} action="Retract it" needsReason onClose={onClose} run={retract}>
      <p>Nobody can use it any more: what names it gets the current revision. This cannot be undone.</p>
    </Confirm>
  );
}

function RevisionRow({
  name,
  one,
  isNewest,
  isChosen,
  ask,
  compare,
}: {
  name: EnvironmentName;
  one: Revision;
  isNewest: boolean;
  isChosen: boolean;
  ask: (asking: Asking) => void;
  compare: (from: number, to: number) => void;
}) {
  const revision = one.number;
  return (
    <tr className={isChosen ? "chosen" : ""}>
      <td className="strong">
        <Link to={ROUTE} params={name} search={isNewest ? {} : { version: String(revision) }}>
          {revision}
        </Link>
      </td>
      <td>
        <span className="row tight">
          {one.tags.map((tag) => (
            <span key={tag} className="label tag">
              {tag}
              {tag !== "latest" && (
                <Button
                  className="untag"
                  aria-label={`Remove the tag ${tag}`}
                  onPress={() => ask({ what: "untag", revision, tag })}
                >
                  <Icon name="cross" />
                </Button>
              )}
            </span>
          ))}
        </span>
        {one.retracted && (
          <>
            <Badge tone="warn">Retracted</Badge>
            <div className="faint message">
              by {one.retracted.byLogin}, for revision {one.retracted.replacement}
              {one.retracted.reason && `: ${visible(one.retracted.reason)}`}
            </div>
          </>
        )}
      </td>
      <td>{one.creatorLogin}</td>
      <td>
        <Time at={one.created} />
      </td>
      <td className="actions">
        {revision > 1 && (
          <Button
            className="button small"
            aria-label={`Changes of revision ${revision}`}
            onPress={() => compare(revision - 1, revision)}
          >
            Changes
          </Button>
        )}
        <Button
          className="button small"
          aria-label={`Tag revision ${revision}`}
          onPress={() => ask({ what: "tag", revision })}
        >
          Tag
        </Button>
        {!isNewest && !one.retracted && (
          <MenuTrigger>
            <Button className="button small" aria-label={`More about revision ${revision}`}>
              More <Icon name="down" />
            </Button>
            <Popover className="popover" placement="bottom end">
              <Menu
                className="menu"
                aria-label={`Revision ${revision}`}
                onAction={(key) => ask({ what: key === "retract" ? "retract" : "restore", revision })}
              >
                <MenuItem id="restore">Restore</MenuItem>
                <MenuItem id="retract">Retract</MenuItem>
              </Menu>
            </Popover>
          </MenuTrigger>
        )}
      </td>
    </tr>
  );
}

export function Revisions() {
  const name = useName();
  const search = useSearch({ from: `${ROUTE}/revisions` });
  const navigate = useNavigate({ from: `${ROUTE}/revisions` });
  const revisions = useInfiniteQuery(queries.revisions(name));
  const [asking, ask] = useState<Asking>();
  const all = revisions.data?.pages.flat() ?? [];
  const newest = all[0]?.number ?? 0;
  const [from, to] = [Number(search.from), Number(search.to)];
  const compare = (from: number, to: number) => void navigate({ search: { from: String(from), to: String(to) } });
  useTitle("Revisions", `${name.project}/${name.env}`);
  return (
    <>
      {from > 0 && to > 0 && <Comparison key={`${from} ${to}`} name={name} from={from} to={to} />}
      <Card
        title="Revisions"
        count={newest || undefined}
        actions={newest > 1 && <Compare newest={newest} from={from || newest - 1} to={to || newest} onChange={compare} />}
      >
        <Loaded of={revisions}>
          {() => (
            <Table label="Revisions" head={["Revision", "Tags", "By", "When", ""]}>
              {all.map((one) => (
                <RevisionRow
                  key={one.number}
                  name={name}
                  one={one}
                  isNewest={one.number === newest}
                  isChosen={one.number === from || one.number === to}
                  ask={ask}
                  compare={compare}
                />
              ))}
            </Table>
          )}
        </Loaded>
        {revisions.hasNextPage && (
          <More isLoading={revisions.isFetchingNextPage} onPress={() => void revisions.fetchNextPage()} />
        )}
      </Card>
      {asking && <Asked name={name} of={asking} onClose={() => ask(undefined)} />}
    </>
  );
}

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
  const [edited, edit] = useState<{ of?: [string, string] }>();
  const [removed, remove] = useState<string>();
  return (
    <Card
      title="Tags"
      count={tags.data && Object.keys(tags.data.tags).length}
      actions={
        <Button className="button small" onPress={() => edit({})}>
          New tag
        </Button>
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
    await navigate({ to: "/$org/-/environments", params: { org: name.org } });
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
      <Card title="Deletion">
        <Loaded of={settings} rows={2}>
          {() => (
            <>
              {row(
                isProtected ? "Protected." : "Not protected.",
                isProtected ? "Nobody can delete it until the protection is lifted." : "Everybody whose role reaches that far may delete it.",
                <Button className="button small" onPress={() => ask("protect")}>
                  {isProtected ? "Lift the protection" : "Protect"}
                </Button>,
              )}
              {row(
                "Delete.",
                "The server keeps it for a time, in which it can be undeleted.",
                <Button className="button small bad" onPress={() => ask("delete")} isDisabled={isProtected}>
                  Delete
                </Button>,
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
