// A certified OpenID Connect provider for tests. The first line of standard output is its issuer; it ends with its
// standard input. Its own pages take any name as a login, with any password. A name `NAME+GROUP+GROUP` signs in NAME
// with these groups.

import { createServer } from "node:http";
import Provider from "oidc-provider";

const redirects = JSON.parse(process.env.REDIRECT_URIS ?? "[]");
const server = createServer();
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const issuer = `http://127.0.0.1:${server.address().port}`;
const provider = new Provider(issuer, {
  clients: [
    {
      client_id: "statewright",
      client_secret: "a secret of the client + its / signs",
      redirect_uris: redirects,
      grant_types: ["authorization_code"],
      response_types: ["code"],
    },
  ],
  pkce: { required: () => true },
  conformIdTokenClaims: false,
  claims: { openid: ["sub"], profile: ["preferred_username", "groups"], email: ["email"] },
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => {
      const [name, ...groups] = id.split("+");
      return { sub: `id-of-${name}`, preferred_username: name, email: `${name}@example.com`, groups };
    },
  }),
});
server.on("request", provider.callback());
process.stdout.write(`${issuer}\n`);
process.stdin.on("end", () => process.exit(0)).resume();
