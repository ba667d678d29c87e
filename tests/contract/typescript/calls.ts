// Calls an emulator with a client whose types are generated from the OpenAPI document.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

declare const process: { argv: string[] };
type Created = components["schemas"]["ServerCreated"];

const [baseUrl, key] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${key}` } });
let calls = 0;

/** The body of an answer; an error of the API ends the program. */
async function answer<T>(call: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<T> {
  const { data, error, response } = await call;
  if (!response.ok) throw new Error(`${response.status}: ${JSON.stringify(error)}`);
  calls += 1;
  return data as T;
}

/** The headers of a call that is made once, however often it is sent. */
const once = () => ({ header: { "Idempotency-Key": crypto.randomUUID() } });

const me = await answer(client.GET("/me"));
if (!me.scopes.includes("servers:order")) throw new Error("the key may not order");
await answer(client.GET("/health"));
await answer(client.GET("/account"));
await answer(client.GET("/balance"));
const tariffs = await answer(client.GET("/catalog/tariffs"));
const tariff_id = tariffs.data[0].id;
await answer(client.GET("/catalog/os", { params: { query: { tariff_id } } }));
await answer(client.GET("/catalog/quote", { params: { query: { tariff_id, months: 3 } } }));

const order = { tariff_id, os: "debian-12", name: "typed", months: 3 as const };
const created = await answer(client.POST("/servers", { params: once(), body: order }));
const path = { server_id: (created as Created).server.id };
const read = await answer(client.GET("/servers/{server_id}", { params: { path, query: { include: "live" } } }));
if (read.billing?.months !== 3) throw new Error("the server is not paid for three months");
await answer(client.PATCH("/servers/{server_id}", { params: { path }, body: { notes: null, auto_renew: true } }));
await answer(client.POST("/servers/{server_id}/renew", { params: { path, ...once() }, body: { months: 1 } }));
await answer(client.POST("/servers/{server_id}/actions/power", { params: { path }, body: { action: "stop" } }));
await answer(client.GET("/servers/{server_id}/ips", { params: { path } }));
const page = await answer(client.GET("/servers", { params: { query: { status: "stopped", limit: 1 } } }));
if (page.data[0].name !== "typed" || page.next_cursor) throw new Error("the list is wrong");

await answer(client.GET("/domains/availability", { params: { query: { name: "typed.com" } } }));
const registration = { name: "typed.com", nameservers: ["a.example.net", "b.example.net"] };
await answer(client.POST("/domains", { params: once(), body: registration }));
await answer(client.GET("/domains"));
const subscription = { url: "https://hooks.example.org/in", events: ["server.created", "ping"] };
const hook = await answer(client.POST("/webhooks", { body: subscription }));
const webhook_id = hook.id;
await answer(client.PATCH("/webhooks/{webhook_id}", { params: { path: { webhook_id } }, body: { active: true } }));
const invoices = await answer(client.GET("/invoices"));
const invoice = { path: { invoice_id: invoices.data[0].id } };
const pdf = await answer(client.GET("/invoices/{invoice_id}/pdf", { params: invoice, parseAs: "arrayBuffer" }));
if (new TextDecoder().decode(pdf).slice(0, 4) !== "%PDF") throw new Error("the invoice is no PDF");
console.log(calls);
