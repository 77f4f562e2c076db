// The page: its tabs, and what it asks of the server every second.
import { showLists, startAdmin } from "./admin.js";
import { getJson, watchConnection } from "./api.js";
import { lookAtMap } from "./cache_map.js";
import { startChat } from "./chat.js";
import { lookAtCurve } from "./curve.js";
import { element } from "./dom.js";
import { startExplain } from "./explain.js";
import { drawLive, lookAtMetrics } from "./live.js";
import { lookAtTree, startTree } from "./tree.js";

const LOOK_EVERY_MS = 1000;

// What a view does every second while it is shown.
const LOOKS = { chat: lookAtMap, live: drawLive, curve: lookAtCurve };
// What a view does when it is opened.
const OPENINGS = { tree: lookAtTree, admin: showLists };

const tabs = [...element("tabs").children];
const nameOf = (tab) => tab.id.replace("tab-", "");
const shown = () => nameOf(tabs.find((tab) => tab.getAttribute("aria-selected") === "true"));

function open(chosen) {
  for (const tab of tabs) {
    const is = tab === chosen;
    tab.setAttribute("aria-selected", String(is));
    tab.tabIndex = is ? 0 : -1;
    element(`view-${nameOf(tab)}`).hidden = !is;
  }
  chosen.focus();
  OPENINGS[nameOf(chosen)]?.();
  LOOKS[nameOf(chosen)]?.();
}

// Arrow keys go from tab to tab, as people who use keyboards expect.
function moveByKey(event) {
  const at = tabs.indexOf(document.activeElement);
  const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
  if (next === undefined) return;
  event.preventDefault();
  open(tabs[(next + tabs.length) % tabs.length]);
}

async function showModel() {
  element("model").textContent = (await getJson("/v1/models")).data[0].id;
}

function showConnection(reached) {
  const note = element("connection");
  note.hidden = reached;
  note.textContent = reached ? "" : "The server does not answer. The page goes on as soon as it does.";
  if (reached) showModel().catch(() => {});
}

async function look() {
  if (!document.hidden) await Promise.allSettled([lookAtMetrics(), LOOKS[shown()]?.()]);
  setTimeout(look, LOOK_EVERY_MS);
}

for (const tab of tabs) tab.addEventListener("click", () => open(tab));
element("tabs").addEventListener("keydown", moveByKey);
element("key").addEventListener("change", () => showModel().catch(() => {}));
watchConnection(showConnection);
startChat();
startTree();
startExplain();
startAdmin();
showModel().catch(() => {});
look();
