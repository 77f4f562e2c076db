// The pool's blocks and the tree's largest branches: GET /cache/map.
import { explainFailure, getJson } from "./api.js";
import { element, legendEntry, make } from "./dom.js";

const PUBLIC_HUE = 205;
const NO_REGION_HUE = 45;
// Neighbouring numbers get hues that are far apart.
const hueOf = (region) => (region === null ? NO_REGION_HUE : (PUBLIC_HUE + region * 137.5) % 360);

function paintCell(cell, [, active, reusable, region]) {
  const state = active > 0 ? "active" : reusable > 0 ? "reusable" : "free";
  cell.className = `cell ${state}`;
  cell.style.setProperty("--hue", hueOf(region));
}

function showMap(map) {
  const place = element("map");
  while (place.childElementCount > map.cells.length) place.lastElementChild.remove();
  while (place.childElementCount < map.cells.length) place.append(make("div", "cell"));
  map.cells.forEach((cell, index) => paintCell(place.children[index], cell));
  const { all, free, active, reusable } = map.blocks;
  const each = map.blocks_per_cell > 1 ? `, ${map.blocks_per_cell} a square` : "";
  element("map-note").textContent =
    `${all} blocks${each}: ${free} free, ${active} active (strong), ${reusable} reusable (pale)`;
  place.setAttribute("aria-label", `Block map: ${element("map-note").textContent}`);
  element("legend").replaceChildren(
    ...map.regions.slice(0, 12).map(({ region, tenant, blocks }) => {
      const colour = make("span", "cell active");
      colour.style.setProperty("--hue", hueOf(region));
      return legendEntry(colour, `${region === 0 ? "public" : (tenant ?? `salt ${region}`)}: ${blocks}`);
    }),
  );
}

function showBranches(branches) {
  element("branches").replaceChildren(
    ...branches.map((branch) => {
      const entry = make("li", branch.held ? "held" : "");
      const text = branch.text ?? (branch.public ? "(not shown)" : "(private)");
      const prefix = make("span", "prefix", text.trim() || "(blank)");
      prefix.style.setProperty("padding-left", `${Math.min(branch.level, 8)}em`);
      prefix.title = branch.text ?? "";
      entry.append(make("span", "size", `${branch.blocks} blocks`), prefix);
      entry.title = `${branch.tokens} tokens up to the next fork, ${branch.blocks} blocks with all that follows`;
      return entry;
    }),
  );
}

export async function lookAtMap() {
  try {
    const map = await getJson("/cache/map");
    if (map.age_s === null) return;
    showMap(map);
    showBranches(map.branches);
  } catch (error) {
    element("map-note").textContent = `No map: ${explainFailure(error)}.`;
  }
}
