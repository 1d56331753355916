// The values of an environment, which a person opens.

import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { Button } from "react-aria-components";
import { address, reveal } from "../api/client";
import * as queries from "../api/queries";
import type { EnvironmentName } from "../api/queries";
import { type Leaf, type Properties, leaves } from "../definitions";
import { visible } from "../format";
import { useRightsOnEnvironment } from "../rights";
import { Icon } from "../ui/icons";
import { Act, Card, Code, Copy, Empty, Failure, Masked, More, Search, Table, useTitle, useTyped } from "../ui/parts";
import { ROUTE, useName } from "./environment";

const { ENVIRONMENT, environmentPath } = queries;

const VALUES = `${ROUTE}/values` as const;

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
  const search = useSearch({ from: VALUES });
  const navigate = useNavigate({ from: VALUES });
  const [typed, setTyped] = useTyped(search.q ?? "", (q) =>
    void navigate({ search: { q: q || undefined }, replace: true }),
  );
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
      {(of.length > 10 || typed !== "") && (
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
  const may = useRightsOnEnvironment(name);
  const [found, setFound] = useState<Leaf[]>();
  const [error, setError] = useState<unknown>();
  const [isOpening, setOpening] = useState(false);
  useTitle("Opened values", `${name.project}/${name.env}`);
  const asking = useRef<AbortController>(undefined);
  // Who left the page does not ask any more.
  useEffect(() => () => asking.current?.abort(), []);
  const open = async () => {
    const { signal } = (asking.current = new AbortController());
    setOpening(true);
    setError(undefined);
    try {
      const names = environmentPath(name);
      const { id } = (await reveal(address(`${ENVIRONMENT}/open`, names), undefined, signal)) as { id: string };
      const url = address(`${ENVIRONMENT}/opened/{openSessionID}`, { ...names, openSessionID: id });
      const { properties } = (await reveal(url, undefined, signal)) as { properties?: Properties };
      setFound(leaves(properties));
    } catch (error) {
      if (signal.aborted) return;
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
              {may("plan") ? (
                <Act className="button primary" onPress={() => void open()} isOff={isOpening}>
                  {isOpening ? "Opening" : "Open the values"}
                </Act>
              ) : (
                "It needs the role plan on this environment."
              )}
            </p>
          </Empty>
        </section>
      )}
    </>
  );
}
