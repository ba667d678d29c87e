"use strict";

// Reads the control interface every second and shows what it answers. Nothing is kept between two visits.
// `GET /_control/` is never read: it holds the keys of the account.

const PAUSE_MS = 1000;
const SHOWN = 100; // rows of a table, the newest
const KINDS = {
  servers: ["id", "name", "status", "power", "os", "ip", "price_monthly", "next_due_at", "is_sandbox"],
  addresses: ["id", "address", "server_id", "ptr", "primary", "bought", "price_monthly"],
  domains: ["id", "name", "status", "auto_renew", "expires_at", "price_renew"],
  ssh_keys: ["id", "name", "type", "fingerprint"],
  subscriptions: ["id", "url", "events", "active", "failures_in_row", "last_status"],
  orders: ["id", "server_name", "status", "amount", "server_id", "failure_reason"],
  invoices: ["id", "type", "status", "amount", "refunded", "description", "server_id", "domain_id"],
  keys: ["id", "name", "mode", "scopes", "expires_at", "revoked_at", "last_used_at"],
  accounts: ["id", "login", "balance", "currency", "suspended", "api_enabled"],
  tariffs: ["id", "name", "price_monthly", "price_hourly", "in_stock", "disabled"],
  locations: ["id", "code", "name", "country", "city"],
  images: ["id", "slug", "name", "family", "supports_ssh_keys", "min_disk_gb"],
  zones: ["id", "tld", "price_register", "price_renew", "price_transfer", "privacy"],
};
const PRESETS = {
  "503, nothing processed": { status: 503, retry_after: 1 },
  "429, wait 5 seconds": { status: 429, retry_after: 5 },
  "402, not enough money": { status: 402 },
  "connection closed before the request is processed": { drop: "before" },
  "processed, then the connection is closed": { drop: "after" },
  "processed, the answer stops short": { truncate: 20 },
  "answered after 5 seconds": { delay: 5 },
  "charged, failed, refunded": { refunded: 502 },
  "server order finishes later": { panel_timeout: "active" },
  "server order fails": { panel_timeout: "failed" },
  "domain order is pending": { registrar: "pending" },
  "domain order is refused later": { registrar: "refused" },
  "address never arrives": { ip: "never" },
  "an unknown field in the answer": { patch: { unknown_field: 1 } },
};
const FINISHED_MS = 4000; // how long a message about something that worked is shown
const SECRET = /vk_(live|test)_[A-Za-z0-9]+|whsec_[A-Za-z0-9]+/g; // answers are masked already; this is the second lock

const at = (id) => document.getElementById(id);
const drawn = new WeakMap(); // place -> what it shows
const opened = new Set(); // rows that show all their fields
let kind = "servers";
let objects = {};
let requests = [];
let reading = Promise.resolve();

// --- elements

function element(name, content = [], attributes = {}) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...[content].flat());
  return made;
}

function button(text, work) {
  const made = element("button", text, { type: "button" });
  made.addEventListener("click", work);
  return made;
}

function moment(value) {
  const date = typeof value === "number" ? new Date(value * 1000) : new Date(value);
  return isNaN(date) ? String(value) : date.toISOString().replace("T", " ").replace(/\.\d+Z$/, " UTC");
}

function shown(name, value) {
  if (value === null || value === undefined || value === "") return "–";
  if (value === true || value === false) return value ? "yes" : "no";
  if (name === "at" || name.endsWith("_at")) return moment(value);
  if (Array.isArray(value)) return value.join(", ");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

const isBad = (name, value) =>
  (name === "status" && (value >= 400 || ["failed", "dead", "cancelled", "suspended", "dropped"].includes(value)))
  || (name === "last_status" && value >= 400);

// Redraws only what has changed, so that marked text and the place one has scrolled to stay.
function draw(place, signature, make) {
  const text = JSON.stringify(signature);
  if (drawn.get(place) === text) return;
  drawn.set(place, text);
  place.replaceChildren(make());
}

// `columns`: names of fields. A row with `key` can show everything it has.
function table(place, columns, rows, { key = (row) => row.id, group = place.id, extra = null } = {}) {
  const isOpen = (row) => opened.has(`${group} ${key(row)}`);
  draw(place, [columns, rows, rows.map(isOpen)], () => {
    const names = columns.map((name) => element("th", name.replaceAll("_", " "), { scope: "col" }));
    const body = rows.slice(0, SHOWN).flatMap((row) => {
      const cells = columns.map((name) => {
        const text = shown(name, row[name]);
        const cell = element("td", text, { title: text });
        if (/amount|price|balance|refunded/.test(name)) cell.className = "money";
        if (isBad(name, row[name])) cell.className = "bad";
        return cell;
      });
      const more = button(isOpen(row) ? "less" : "more", () => {
        const name = `${group} ${key(row)}`;
        opened.delete(name) || opened.add(name);
        table(place, columns, rows, { key, group, extra });
      });
      more.setAttribute("aria-expanded", isOpen(row));
      cells.unshift(element("td", extra ? [more, " ", extra(row)] : more, { class: "buttons" }));
      const lines = [element("tr", cells)];
      if (isOpen(row)) {
        const all = element("pre", JSON.stringify(row, null, 2));
        lines.push(element("tr", element("td", all, { class: "more", colspan: columns.length + 1 })));
      }
      return lines;
    });
    const note = !rows.length ? "none" : rows.length > SHOWN ? `the newest ${SHOWN} of ${rows.length}` : "";
    if (note) body.push(element("tr", element("td", note, { class: "empty", colspan: columns.length + 1 })));
    const head = element("tr", [element("td"), ...names]);
    return element("table", [element("thead", head), element("tbody", body)]);
  });
}

// --- the control interface

async function control(method, path, body) {
  const options = { method, cache: "no-store" };
  if (body !== undefined) options.body = JSON.stringify(body);
  const answer = await fetch(`/_control${path}`, options);
  const content = JSON.parse((await answer.text()).replace(SECRET, "**********"));
  if (!answer.ok) throw new Error(content.error);
  at("now").textContent = moment(answer.headers.get("Date"));
  return content;
}

// Does something on the emulator, says how it went, and shows what has changed.
async function act(place, work, done) {
  const message = at(place);
  try {
    await work();
    message.className = "message";
    message.textContent = done;
    setTimeout(() => { if (message.textContent === done) message.textContent = ""; }, FINISHED_MS);
  } catch (error) {
    message.className = "message failed";
    message.textContent = error.message;
  }
  await refresh();
}

// The requests that are not known yet, or not answered yet; all of them after a reset.
async function readRequests() {
  const from = requests.findIndex((row) => row.status === null);
  const anchor = requests.at(from < 0 ? requests.length - 1 : from);
  if (anchor) {
    const read = await control("GET", `/requests?since=${anchor.seq - 1}&last=${SHOWN}`);
    const first = read[0];
    if (first && first.seq === anchor.seq && first.at === anchor.at && first.path === anchor.path) {
      requests = [...requests.filter((row) => row.seq < anchor.seq), ...read].slice(-SHOWN);
      return;
    }
  }
  requests = await control("GET", `/requests?last=${SHOWN}`);
}

// --- what is shown

const newestFirst = (rows) => [...rows].reverse();

function showObjects() {
  const kinds = [...Object.keys(KINDS), ...Object.keys(objects)]
    .filter((name, place, all) => name in objects && name !== "deliveries" && all.indexOf(name) === place);
  draw(at("kinds"), [kind, kinds.map((name) => objects[name].length)], () => {
    const tabs = document.createDocumentFragment();
    for (const name of kinds) {
      const tab = button(`${name.replaceAll("_", " ")} ${objects[name].length}`, () => { kind = name; showObjects(); });
      tab.setAttribute("aria-pressed", name === kind);
      tab.dataset.kind = name;
      tabs.append(tab);
    }
    return tabs;
  });
  const rows = objects[kind] ?? [];
  const plain = Object.keys(rows[0] ?? { id: 0 }).filter((name) => !["kind", "seq"].includes(name)).slice(0, 6);
  table(at("object-table"), KINDS[kind] ?? plain, newestFirst(rows), { group: kind });
}

function showMoney(ledger) {
  const accounts = objects.accounts;
  at("balance").textContent = accounts.length ? `${accounts[0].balance} ${accounts[0].currency}` : "–";
  table(at("balances"), ["id", "login", "balance", "currency"], accounts);
  const signed = ledger.map((row) => ({ ...row, amount: `${row.direction === "debit" ? "−" : "+"}${row.amount}` }));
  table(at("ledger"), ["at", "amount", "type", "operation", "object_id", "invoice_id"], newestFirst(signed));
}

function showDeliveries() {
  const urls = new Map(objects.subscriptions.map((row) => [row.id, row.url]));
  const rows = objects.deliveries.map((row) => ({
    ...row,
    url: urls.get(row.subscription_id),
    status: row.next_attempt_at !== null ? "pending" : row.dead_at !== null ? "dead" : "delivered",
  }));
  at("count-undelivered").textContent = rows.filter((row) => row.status !== "delivered").length;
  const columns = ["created_at", "event_type", "status", "attempts", "last_status", "next_attempt_at", "url"];
  table(at("delivery-table"), columns, newestFirst(rows));
}

function showFaults(faults) {
  at("count-faults").textContent = faults.length;
  const remove = (row) => button("remove", () =>
    act("faults-message", () => control("DELETE", `/faults/${row.id}`), `Fault ${row.id} is removed.`));
  table(at("fault-table"), ["id", "action", "method", "path", "after", "times"], faults, { extra: remove });
}

// One read after the other: a click does not overtake the read of that second.
function refresh() {
  reading = reading.then(readAll);
  return reading;
}

async function readAll() {
  try {
    const [ledger, faults, held] = await Promise.all(
      [control("GET", "/ledger"), control("GET", "/faults"), control("GET", "/objects"), readRequests()]);
    objects = held;
    at("count-servers").textContent = objects.servers.length;
    at("count-domains").textContent = objects.domains.length;
    showObjects();
    showMoney(ledger);
    showDeliveries();
    showFaults(faults);
    table(at("request-table"), ["seq", "at", "method", "path", "query", "status", "key_id", "bucket", "replayed"],
      newestFirst(requests), { key: (row) => row.seq });
    at("connection").className = "";
    at("connection").textContent = "● live";
  } catch (error) {
    at("connection").className = "lost";
    at("connection").textContent = error instanceof TypeError ? "not reachable, trying again" : error.message;
  }
}

// None while the page is hidden.
async function keepFresh() {
  if (!document.hidden) await refresh();
  setTimeout(keepFresh, PAUSE_MS);
}

// --- what one can do

function advance(seconds) {
  return act("clock-message", () => control("POST", "/clock", { advance: seconds }), "The clock has moved.");
}

for (const step of document.querySelectorAll("[data-advance]")) {
  step.addEventListener("click", () => advance(Number(step.dataset.advance)));
}

at("advance").addEventListener("submit", (event) => {
  event.preventDefault();
  const { amount, unit } = event.target.elements;
  advance(Number(amount.value) * Number(unit.value));
});

const fields = at("arm").elements;
for (const name of Object.keys(PRESETS)) fields.preset.append(element("option", name));
const fillAction = () => { fields.action.value = JSON.stringify(PRESETS[fields.preset.value]); };
fields.preset.addEventListener("change", fillAction);
fillAction();

at("arm").addEventListener("submit", (event) => {
  event.preventDefault();
  act("faults-message", async () => {
    let action;
    try {
      action = JSON.parse(fields.action.value);
    } catch (error) {
      throw new Error(`Action is not JSON: ${error.message}`);
    }
    const fault = { action, after: Number(fields.after.value), times: Number(fields.times.value) };
    if (fields.method.value) fault.method = fields.method.value;
    if (fields.path.value) fault.path = fields.path.value;
    await control("POST", "/faults", fault);
  }, "The fault is armed.");
});

at("clear-faults").addEventListener("click", () =>
  act("faults-message", () => control("DELETE", "/faults"), "All faults are removed."));

function askReset(isAsked) {
  at("confirm-reset").hidden = !isAsked;
  at("ask-reset").hidden = isAsked;
  at(isAsked ? "cancel-reset" : "ask-reset").focus();
}

at("ask-reset").addEventListener("click", () => askReset(true));
at("cancel-reset").addEventListener("click", () => askReset(false));
at("do-reset").addEventListener("click", () => {
  askReset(false);
  opened.clear();
  act("reset-message", () => control("POST", "/reset", {}), "The account is fresh.");
});

at("base-url").textContent = `${location.origin}/v1`;
keepFresh();
