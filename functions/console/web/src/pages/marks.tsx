// What a person puts on a stack or a state with a reason, a protection or a hold: the notice, and the buttons for it.

import { type ReactNode, useState } from "react";
import { Button } from "react-aria-components";
import type { Protection } from "../api/queries";
import { visible } from "../format";
import { Icon, type IconName } from "../ui/icons";
import { Badge, Time } from "../ui/parts";

/** A button with a dialog, which gets what closes it. */
export function Asks({ text, icon, children }: { text: string; icon?: IconName; children: (close: () => void) => ReactNode }) {
  const [isAsking, ask] = useState(false);
  return (
    <>
      <Button className="button" onPress={() => ask(true)}>
        {icon && <Icon name={icon} />} {text}
      </Button>
      {isAsking && children(() => ask(false))}
    </>
  );
}

/** Says who put it there and why. Its children take it away. */
export function Mark({
  word,
  tone,
  by,
  children,
}: {
  word: string;
  tone: "good" | "warn";
  by: Protection;
  children: ReactNode;
}) {
  return (
    <div className={tone === "warn" ? "notice warn row" : "notice row"}>
      <Badge tone={tone} icon="lock">
        {word}
      </Badge>
      <span>
        by <strong>{by.by}</strong>, <Time at={by.at} />: {visible(by.reason)}
      </span>
      <span className="spring" />
      {children}
    </div>
  );
}
