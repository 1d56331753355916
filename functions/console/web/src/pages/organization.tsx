// The organization: members, teams, grants, tokens, issuers, labels, its audit trail, and what was deleted; and the server.

import { Outlet } from "@tanstack/react-router";

export { Audit } from "./audit";
export { Deleted } from "./deleted";
export { Grants } from "./grants";
export { Issuers } from "./issuers";
export { LabelPolicy } from "./labelpolicy";
export { Members } from "./members";
export { Operator } from "./operator";
export { Teams } from "./teams";
export { Tokens } from "./tokens";

export function Organization() {
  return (
    <div className="page">
      <Outlet />
    </div>
  );
}
