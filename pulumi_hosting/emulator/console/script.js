"use strict";

// Reads the control interface every second and shows what it answers. Nothing is kept between two visits.
// `GET /_control/` is never read: it holds the keys of the account.

const PAUSE_MS = 1000;
const SHOWN = 100; // rows of a table
// `path`: of one object in the control interface, and in the API if the account owns it. `edit`: what can be
// changed behind the API's back. `acts`: buttons, each with method, what follows the path, and body.
const KINDS = {
  "servers": {
    "columns": ["id", "name", "status", "power", "os", "ip", "price_monthly", "next_due_at", "is_sandbox"],
    "path": "/servers/{id}",
    "edit": ["name", "status", "notes", "auto_renew", "blocked", "expired", "power", "os"],
    "acts": {
      "suspend": ["PATCH", "", {"status": "suspended"}], "resume": ["PATCH", "", {"status": "active"}],
      "delete": ["DELETE", ""]
    }
  },
  "addresses": {
    "columns": ["id", "address", "server_id", "ptr", "primary", "bought", "price_monthly"],
    "path": "/servers/{server_id}/ips/{id}", "edit": ["ptr"], "acts": {"delete": ["DELETE", ""]}
  },
  "domains": {
    "columns": ["id", "name", "status", "auto_renew", "expires_at", "price_renew"],
    "path": "/domains/{id}", "edit": ["status", "blocked", "auto_renew", "privacy", "nameservers"],
    "acts": {"expire": ["PATCH", "", {"status": "expired"}], "delete": ["DELETE", ""]}
  },
  "ssh_keys": {
    "columns": ["id", "name", "type", "fingerprint"],
    "path": "/ssh-keys/{id}", "edit": ["name"], "acts": {"delete": ["DELETE", ""]}
  },
  "subscriptions": {
    "columns": ["id", "url", "events", "active", "failures_in_row", "last_status"],
    "path": "/webhooks/{id}", "edit": ["url", "events", "description", "active"],
    "acts": {"delete": ["DELETE", ""]}
  },
  "orders": {
    "columns": ["id", "server_name", "status", "amount", "server_id", "failure_reason"], "path": "/orders/{id}"
  },
  "invoices": {
    "columns": ["id", "type", "status", "amount", "refunded", "description", "server_id", "domain_id"],
    "path": "/invoices/{id}",
    "acts": {"confirm payment": ["POST", "/confirm", {}], "refund": ["POST", "/refund", {}]}
  },
  "keys": {
    "columns": ["id", "name", "mode", "scopes", "expires_at", "revoked_at", "last_used_at"],
    "path": "/keys/{id}", "acts": {"revoke": ["DELETE", ""]}
  },
  "accounts": {
    "columns": ["id", "login", "balance", "currency", "suspended", "banned", "api_enabled"],
    "path": "/account",
    "edit": [
      "balance", "email_verified", "suspended", "group_discount_percent", "loyalty_discount_percent",
      "referral_percent"
    ],
    "acts": {"ban": ["PATCH", "", {"banned": true}]}
  },
  "emails": {"columns": ["created_at", "to", "subject"]},
  "tariffs": {
    "columns": ["id", "name", "price_monthly", "price_hourly", "in_stock", "disabled"],
    "path": "/tariffs/{id}", "edit": ["in_stock", "price_monthly", "disabled"]
  },
  "locations": {
    "columns": ["id", "code", "name", "country", "city"],
    "path": "/locations/{id}", "edit": ["code", "name", "country", "city"]
  },
  "images": {
    "columns": ["id", "slug", "name", "family", "supports_ssh_keys", "min_disk_gb"],
    "path": "/images/{id}", "edit": ["slug", "name", "family", "version", "supports_ssh_keys", "min_disk_gb"],
    "acts": {"delete": ["DELETE", ""]}
  },
  "zones": {
    "columns": ["id", "tld", "price_register", "price_renew", "price_transfer", "privacy"],
    "path": "/zones/{id}",
    "edit": ["price_register", "price_renew", "price_transfer", "min_years", "max_years", "privacy"],
    "acts": {"delete": ["DELETE", ""]}
  }
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
let due = []; // what happens next
let now = 0; // unix seconds of the emulator's clock
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

const lines = (value) => element("pre", typeof value === "string" ? value : JSON.stringify(value, null, 2));

// The rows with every word that the filter above the list holds.
function filtered(place, rows) {
  const filter = place.previousElementSibling;
  const words = filter?.type === "search" ? filter.value.toLowerCase().split(/\s+/).filter(Boolean) : [];
  return words.length ? rows.filter((row) => {
    const text = JSON.stringify(row).toLowerCase();
    return words.every((word) => text.includes(word));
  }) : rows;
}

// `columns`: names of fields. A row, told from others by `key`, can be opened: then it shows its `detail`.
function table(place, columns, all, { key = (row) => row.id, group = place.id, extra = null, detail = lines } = {}) {
  const rows = filtered(place, all);
  const isOpen = (row) => opened.has(`${group} ${key(row)}`);
  draw(place, [columns, rows, rows.map(isOpen), rows.some(isOpen) && due], () => {
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
        table(place, columns, all, { key, group, extra, detail });
      });
      more.setAttribute("aria-expanded", isOpen(row));
      cells.unshift(element("td", extra ? [more, " ", extra(row)] : more, { class: "buttons" }));
      const opening = { class: "more", colspan: columns.length + 1 };
      return [element("tr", cells), ...(isOpen(row) ? [element("tr", element("td", detail(row), opening))] : [])];
    });
    const note = !rows.length ? "none" : rows.length > SHOWN ? `the first ${SHOWN} of ${rows.length}` : "";
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
  now = Date.parse(answer.headers.get("Date")) / 1000;
  at("now").textContent = moment(now);
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
  const detail = (row) => [element("p", buttonsOf(kind, row), { class: "steps" }), lines(row)];
  table(at("object-table"), KINDS[kind]?.columns ?? plain, newestFirst(rows), { group: kind, detail });
}

// What one can do to an object; what does not fit its status is refused, and the refusal is shown.
function buttonsOf(kind, row) {
  const { path = "", edit, acts = {} } = KINDS[kind] ?? {};
  const there = path.replace(/\{(\w+)\}/g, (_, name) => row[name]);
  const named = `${kind.replaceAll("_", " ")} ${row.id}`;
  const send = (method, after, body) =>
    control(method, there + after, body && kind === "accounts" ? { account_id: row.id, ...body } : body);
  const made = Object.entries(acts).map(([word, [method, after, body]]) =>
    button(word, () => act("object-message", () => send(method, after, body), `${named}: ${word} is done.`)));
  if (edit) made.unshift(button("change", () => openChange(named, edit, row, (body) => send("PATCH", "", body))));
  if (path && "account_id" in row) made.push(button("fault", () => {
    fields.path.value = `^${there}(/|$)`;
    fields.preset.focus();
  }));
  return [...made, ...moves(kind, row)];
}

// A button that moves the clock to what happens next to the object, if something will.
function moves(kind, row) {
  const next = due.find((entry) => entry.kind === kind && entry.object_id === row.id);
  return next ? [button(`go to ${next.what.replaceAll("_", " ")}: ${moment(next.at)}`, () => moveTo(next.at))] : [];
}

function showDue() {
  const named = new Map(Object.values(objects).flat().map((row) => [`${row.kind} ${row.id}`, row]));
  const rows = due.map((entry) => {
    const row = named.get(`${entry.kind} ${entry.object_id}`) ?? {};
    return {
      ...entry,
      what: entry.what.replaceAll("_", " "),
      object: row.name ?? row.server_name ?? row.description ?? row.event_type,
      price: row.price_monthly ?? row.price_renew ?? row.amount,
      auto_renew: row.auto_renew,
    };
  });
  const go = (row) => button("go there", () => moveTo(row.at));
  table(at("due-table"), ["at", "what", "object", "price", "auto_renew"], rows,
    { key: (row) => `${row.what} ${row.object_id} ${row.at}`, extra: go });
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
  const detail = ({ payload, headers, ...row }) => {
    const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}`).join("\n");
    const sent = `${head || "not sent yet"}\n\n${JSON.stringify(JSON.parse(payload), null, 2)}`;
    return [element("p", moves("deliveries", row), { class: "steps" }), lines(sent), lines(row)];
  };
  table(at("delivery-table"), columns, newestFirst(rows), { detail });
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
    const [ledger, faults, ...held] = await Promise.all([
      control("GET", "/ledger"), control("GET", "/faults"), control("GET", "/objects"), control("GET", "/due"),
      readRequests()]);
    [objects, due] = held;
    at("count-servers").textContent = objects.servers.length;
    at("count-domains").textContent = objects.domains.length;
    showDue();
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

const moveTo = (moment) => advance(Math.max(0, Date.parse(moment) / 1000 - now));

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

// What was a text stays one; anything else is JSON, or a text if it is none. `null` is null.
function typed(text, before) {
  if (typeof before === "string" && text !== "null") return text;
  try { return JSON.parse(text); } catch { return text; }
}

function openChange(named, edit, row, send) {
  const written = (value) => typeof value === "string" ? value : JSON.stringify(value);
  at("change-title").textContent = `Change ${named}`;
  at("change-message").textContent = "";
  at("change-fields").replaceChildren(...edit.map((name) => {
    const input = element("input", [], { name, value: written(row[name]), autocomplete: "off" });
    return element("label", [name.replaceAll("_", " "), input], { class: "wide" });
  }));
  at("save-change").onsubmit = (event) => {
    event.preventDefault();
    const given = edit.map((name) => [name, event.target.elements.namedItem(name).value])
      .filter(([name, text]) => text !== written(row[name]));
    act("change-message", async () => {
      await send(Object.fromEntries(given.map(([name, text]) => [name, typed(text, row[name])])));
      at("change").close();
    }, "");
  };
  at("change").showModal();
}

at("cancel-change").addEventListener("click", () => at("change").close());

for (const id of ["due-table", "object-table", "ledger", "delivery-table", "request-table"]) {
  const filter = element("input", [], { type: "search", placeholder: "Filter: words of a row", "aria-label": "Filter" });
  filter.addEventListener("input", refresh);
  at(id).before(filter);
}

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
