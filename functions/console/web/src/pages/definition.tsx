// The definition of an environment, to read and to edit.

import { keepPreviousData, useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useSearch } from "@tanstack/react-router";
import { useEffect, useMemo, useRef, useState } from "react";
import { Button } from "react-aria-components";
import { ApiError, type Definition, address, decryptDefinition, keepDraft, sendDefinition } from "../api/client";
import * as queries from "../api/queries";
import type { EnvironmentName } from "../api/queries";
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
import { useRightsOnEnvironment } from "../rights";
import { Editor, type Field, goTo } from "../ui/editor";
import { Icon } from "../ui/icons";
import { Act, Badge, Card, Code, Facts, Failure, Loaded, More, Notice, Time, Waiting, useTitle } from "../ui/parts";
import { MASK } from "../values";
import { InItsPlace, Lines, Restore, ROUTE, useName, useReadAgain } from "./environment";

const { ENVIRONMENT, environmentPath } = queries;

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

/** Values that are listed next to a definition. */
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
          <Act className="button small" onPress={onCheck} isOff={!onCheck || isChecking}>
            Check
          </Act>
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

/** Rows that are drawn at first, and with each press of the button. */
const IMPORTERS_SHOWN = 20;

function ImportedBy({ name }: { name: EnvironmentName }) {
  const found = useQuery(queries.importedBy(name));
  const [shown, setShown] = useState(IMPORTERS_SHOWN);
  return (
    <Card title="Imported by" count={found.data && found.data.items.length + found.data.hidden}>
      <Loaded of={found} rows={2}>
        {({ items, hidden, more }) => (
          <>
            {items.length === 0 && hidden === 0 && <p className="none">No environment imports it.</p>}
            {items.length > 0 && (
              <ul className="plain-list">
                {items.slice(0, shown).map(({ project, name: env, of }) => (
                  <li key={`${project}/${env}`} className="list-row">
                    <Icon name="environment" />
                    <Link className="ellipsis" to={ROUTE} params={{ org: name.org, project, env }}>
                      {project}/{env}
                    </Link>
                    {of
                      .filter((version) => version !== "latest")
                      .map((version) => (
                        <Badge key={version} tone="plain">
                          @{version}
                        </Badge>
                      ))}
                  </li>
                ))}
              </ul>
            )}
            {items.length > shown && <More isLoading={false} onPress={() => setShown(shown + IMPORTERS_SHOWN)} />}
            {hidden > 0 && <p className="foot">{count(hidden, "environment")} that you may not see.</p>}
            {more && <Notice>Here are the first {number(queries.LIST_MAX)}.</Notice>}
          </>
        )}
      </Loaded>
    </Card>
  );
}

function Now({ name, revision }: { name: EnvironmentName; revision: number }) {
  const revisions = useInfiniteQuery(queries.revisions(name));
  const one = revisions.data?.pages[0]?.find((one) => one.number === revision);
  const { refetch } = revisions;
  const listed = revisions.data?.pages[0]?.[0]?.number;
  useEffect(() => {
    if (listed !== undefined && listed < revision) void refetch();
  }, [listed, revision, refetch]);
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
        <Act className="button" onPress={onTheirs} isOff={isBusy}>
          Drop mine, show revision {number(revision)}
        </Act>
        <Act className="button bad" onPress={onMine} isOff={isBusy}>
          Save mine over revision {number(revision)}
        </Act>
      </div>
    </div>
  );
}

/** How long a person pauses before a definition is checked. */
const PAUSE = 1000;

function Edit({ name, definition }: { name: EnvironmentName; definition: Definition }) {
  const client = useQueryClient();
  const may = useRightsOnEnvironment(name);
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

  useEffect(
    () => (isDirty ? keepDraft("Your changes to the definition are not saved, and leaving drops them.") : undefined),
    [isDirty],
  );
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
      const plain = await decryptDefinition(address(`${ENVIRONMENT}/decrypt`, environmentPath(name)));
      if (plain.etag !== definition.etag) {
        await client.refetchQueries({ queryKey: queries.definition(name).queryKey });
      }
      setDraft({ text: plain.text, original: plain.text, of: plain, isPlain: true });
    });
  const canSave = isDirty && !isOvertaken && !isBusy && may("apply");

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
              {!isDirty && (isPlain || (hasSealed(definition.text) && may("plan"))) && (
                <Act className="button" onPress={() => (isPlain ? drop() : void decrypt())} isOff={isBusy}>
                  <Icon name="eye" /> {isPlain ? "Hide secrets" : "Decrypt"}
                </Act>
              )}
              {isDirty && (
                <Act className="button" onPress={drop} isOff={isBusy}>
                  Drop changes
                </Act>
              )}
              <Act className="button primary" onPress={() => void save(definition)} isOff={!canSave}>
                Save
              </Act>
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
        <ImportedBy name={name} />
        <Now name={name} revision={definition.revision} />
      </div>
    </div>
  );
}

function OldRevision({ name, revision }: { name: EnvironmentName; revision: number }) {
  const may = useRightsOnEnvironment(name);
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
      setPlain((await decryptDefinition(address(`${ENVIRONMENT}/versions/{version}/decrypt`, names))).text);
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
            {old.data && hasSealed(old.data.text) && may("plan") && (
              <Button className="button" onPress={() => (plain === undefined ? void decrypt() : setPlain(undefined))}>
                <Icon name="eye" /> {plain === undefined ? "Decrypt" : "Hide secrets"}
              </Button>
            )}
            {may("apply") && (
              <Act
                className="button"
                onPress={() => setRestoring(true)}
                isOff={old.data?.revision !== revision}
              >
                Restore
              </Act>
            )}
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
