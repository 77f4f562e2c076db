// Elements of the page. Text from a server or a model goes through textContent alone.

export const element = (id) => document.getElementById(id);

export function make(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

export function button(text, act) {
  const made = make("button", "", text);
  made.type = "button";
  made.addEventListener("click", act);
  return made;
}

// A list of names and values: <dl> with a <div> a pair.
export function pairList(className, pairs) {
  const list = make("dl", className);
  for (const [name, value] of pairs) {
    const pair = make("div");
    pair.append(make("dt", "", name), make("dd", "", value));
    list.append(pair);
  }
  return list;
}

// Colour is never the only mark of an entry: a name stands beside it.
export function legendEntry(swatch, text) {
  const entry = make("li");
  entry.append(swatch, text);
  return entry;
}
