// What an admin may do, each after one question. Without keys the local user is the admin.
import { explainFailure, getJson, request } from "./api.js";
import { button, element, make } from "./dom.js";
import { age } from "./text.js";

let settle = null; // of the question that is asked

// Resolves to whether the question was answered with yes. Escape is no. The dialog's event "close"
// is not looked at: it comes later, perhaps when the next question is asked.
function confirm(question) {
  element("confirm-text").textContent = question;
  element("confirm").showModal();
  return new Promise((resolve) => {
    settle = resolve;
  });
}

function answer(yes) {
  element("confirm").close();
  settle?.(yes);
  settle = null;
}

function tell(text, failed = false) {
  element("admin-note").textContent = text;
  element("admin-note").className = failed ? "error" : "";
}

async function act(question, path, method, done) {
  if (!(await confirm(question))) return;
  try {
    const reply = await (await request(path, { method })).json();
    tell(done(reply));
  } catch (error) {
    tell(error.message, true);
  }
  await showLists();
}

const reset = () =>
  act(
    "Empty the cache? What nobody uses leaves memory; tiers keep what they have. Prompts are computed again.",
    "/reset_prefix_cache",
    "POST",
    () => "The cache was emptied.",
  );

const remove = (name) =>
  act(
    `Remove all blocks of tenant "${name}", in memory and in all tiers? Nothing brings them back.`,
    `/cache/tenant/${encodeURIComponent(name)}`,
    "DELETE",
    ({ removed_everywhere: all }) =>
      all
        ? `Tenant "${name}" was removed everywhere.`
        : `Tenant "${name}" was removed, but not everywhere: some tier did not follow.`,
  );

function table(caption, names, rows) {
  const made = make("table");
  made.append(make("caption", "hidden", caption));
  const row = (kind, cells) => {
    const line = make("tr");
    for (const cell of cells) {
      const place = make(kind);
      place.append(cell);
      line.append(place);
    }
    return line;
  };
  const head = make("thead");
  head.append(row("th", names));
  const body = make("tbody");
  body.append(...rows.map((cells) => row("td", cells)));
  made.append(head, body);
  return made;
}

async function showInto(id, show) {
  try {
    element(id).replaceChildren(await show());
  } catch (error) {
    element(id).replaceChildren(make("p", "quiet", `Not shown: ${explainFailure(error)}.`));
  }
}

async function tenants() {
  const { data } = await getJson("/tenants");
  return table(
    "Tenants",
    ["tenant", "keys", "running", "waiting", "blocks", ""],
    data.map(({ name, keys, now }) => {
      const removal = button("Remove", () => remove(name));
      removal.setAttribute("aria-label", `Remove tenant ${name}`);
      const counts = [keys, now.answers_running, now.requests_waiting, now.kv_blocks];
      return [name, ...counts.map(String), removal];
    }),
  );
}

async function retained() {
  const reply = await getJson("/cache/retained");
  const { grants, tenants: whose, blocks_retained: blocks, blocks_retained_max: most } = reply;
  if (grants.length === 0) return make("p", "quiet", `Nothing is retained; ${most} blocks may be.`);
  const shares = whose.map((one) => `${one.tenant} ${one.blocks}`).join(", ");
  return table(
    `Retained prefixes: ${blocks} of at most ${most} blocks (${shares})`,
    ["whose", "blocks", "priority", "ends in"],
    grants.map((grant) => [grant.tenant, String(grant.blocks), String(grant.priority), age(grant.seconds_left)]),
  );
}

export const showLists = () => Promise.all([showInto("tenants", tenants), showInto("retained", retained)]);

export function startAdmin() {
  element("confirm-yes").addEventListener("click", () => answer(true));
  element("confirm-no").addEventListener("click", () => answer(false));
  element("confirm").addEventListener("cancel", (event) => {
    event.preventDefault();
    answer(false);
  });
  element("reset").addEventListener("click", reset);
}
