// Runs the worker of a host rule on requests, and prints what it asks the other host and what it replies, one line each.
//
// Usage: node host_rule.mjs SCRIPT

import { readFileSync } from "node:fs";

const script = readFileSync(process.argv[2], "utf8");

async function reply(settings, url, headers, upstream) {
  const asked = [];
  const fetch = async (target, { method, headers }) => {
    asked.push(`${method} ${target}${headers.has("Authorization") ? " with credentials" : ""}`);
    return upstream;
  };
  let listen;
  const text = script.replace("SETTINGS", () => JSON.stringify(settings));
  new Function("addEventListener", "fetch", text)((_, handler) => (listen = handler), fetch);
  let replied;
  listen({ request: new Request(url, { headers }), respondWith: (response) => (replied = response) });
  const response = await replied;
  const kept = ["Location", "WWW-Authenticate", "ETag"].map((name) => response.headers.get(name)).filter(Boolean);
  console.log([...asked, response.status, ...kept].join(" | "));
}

const site = { host: "b.s3.example", pathPrefix: "" };
await reply(site, "https://www.example/a?x=1", {}, new Response("ok", { headers: { ETag: "1" } }));
const moved = (to) => new Response(null, { status: 302, headers: { Location: to } });
await reply(site, "https://www.example/a?x=1&y=2", {}, moved("/c?y=3"));
await reply(site, "https://www.example/a?x=1", {}, moved("https://other.example/c"));
await reply(site, "https://www.example/", {}, new Response(null, { headers: { "x-amzn-remapped-www-authenticate": "Bearer" } }));

const registry = { host: "d.pkg.dev", pathPrefix: "/p/r", credentials: btoa("joe:it's"), realm: "s / e / i" };
for (const Authorization of ["", "Bearer x", `Basic ${btoa("joe:no")}`, `basic ${btoa("joe:it's")}`]) {
  await reply(registry, "https://images.example/v2/", { Authorization }, new Response("ok"));
}
