// The prefix tree, branch by branch: GET /cache/branch.
import { ApiFailure, explainFailure, getJson } from "./api.js";
import { button, element, make, pairList } from "./dom.js";
import { age } from "./text.js";

const SHOWN_CHARACTERS = 60;
let shown = null; // the number of the branch, null at the top
let walks = 0; // that were begun: the answer to an earlier one is dropped

const ownerOf = (branch) => (branch.public ? "public" : (branch.tenant ?? "a salt of its own"));
const textOf = (branch) => branch.text ?? (branch.public ? "(not shown)" : "(private)");

function beginning(branch) {
  const text = textOf(branch).trim() || "(blank)";
  return text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text;
}

function heldBy(branch) {
  const holders = [];
  if (branch.sequences > 0) holders.push(`${branch.sequences} running`);
  if (branch.retained) holders.push("retained");
  return holders.join(", ") || "nobody";
}

function goes(branch) {
  if (branch.eviction_rank === 0) return "next";
  if (branch.eviction_rank !== null) return `after ${branch.eviction_rank} others`;
  return branch.superseded ? "superseded by its session: among the first" : "not soon";
}

// Sequences that hold a branch use it now.
function usedText(branch) {
  if (branch.sequences > 0) return "now";
  return branch.idle_s === null ? "unknown" : `${age(branch.idle_s)} ago`;
}

function facts(branch) {
  return pairList("facts", [
    ["tokens", String(branch.tokens)],
    ["blocks", `${branch.blocks_own} here, ${branch.blocks} with all below`],
    ["whose", ownerOf(branch)],
    ["held by", heldBy(branch)],
    ["last used", usedText(branch)],
    ["evicted", goes(branch)],
  ]);
}

function step(branch) {
  const made = button(beginning(branch), () => walk(branch.node));
  made.dir = "auto";
  return made;
}

function showPath(above) {
  const top = button("All", () => walk(null));
  element("tree-path").replaceChildren(top, ...above.map(step));
}

function showBranch(branch) {
  const place = element("tree-node");
  if (!branch) return place.replaceChildren();
  const text = make("div", "text", textOf(branch));
  text.dir = "auto";
  place.replaceChildren(text, facts(branch));
}

function showBelow(branches) {
  element("tree-below").replaceChildren(
    ...branches.map((branch) => {
      const entry = make("li", branch.sequences > 0 ? "held" : "");
      entry.append(step(branch), facts(branch));
      return entry;
    }),
  );
}

function note(view) {
  const parts = [`${view.nodes_seen} of ${view.nodes} nodes were looked at`];
  if (view.above_all > view.above.length) {
    parts.push(`${view.above.length} of ${view.above_all} steps above are shown`);
  }
  if (view.below_all > view.below.length) {
    parts.push(`the largest ${view.below.length} of ${view.below_all} branches are shown`);
  }
  if (view.below_all === 0) parts.push("nothing goes on from here");
  return `${parts.join("; ")}.`;
}

async function walk(node) {
  walks += 1;
  const mine = walks;
  try {
    const view = await getJson(node === null ? "/cache/branch" : `/cache/branch?node=${node}`);
    if (mine !== walks) return;
    shown = view.branch?.node ?? null;
    showPath(view.above);
    showBranch(view.branch);
    showBelow(view.below);
    element("tree-note").textContent = note(view);
  } catch (error) {
    if (mine !== walks) return;
    const left = error instanceof ApiFailure && error.status === 404 && node !== null;
    if (left) return walk(null);
    element("tree-note").textContent = `No tree: ${explainFailure(error)}.`;
  }
}

export const lookAtTree = () => walk(shown);

export function startTree() {
  element("tree-again").addEventListener("click", lookAtTree);
}
