// Keys of the page, and the help that lists them. Keys that move the picture are in motion.js.

const $ = (id) => document.getElementById(id);

export const KEYS = [
  ["+ −", "zoom in and out"],
  ["arrows", "move"],
  ["0", "show the whole picture"],
  ["1 2 3 4", "one picture, divider, side by side, lens"],
  ["Space", "hold to see the other side"],
  ["s", "save this view"],
  ["e", "export the picture, or this part of it"],
  ["b", "before and after, or a zoom, to share"],
  ["i", "inside the operator"],
  ["f", "full screen"],
  ["o", "open a picture"],
  ["[ ]", "previous and next picture"],
  ["Escape", "stop computing this view"],
  ["?", "these keys"],
];

const MODES = ["off", "divider", "side", "lens"];

/** Call `act.mode(name)`, `act.peek(on)`, `act.save()` … when keys are pressed; `isViewing()` tells if there is a picture. */
export function listenForKeys(act, isViewing) {
  const list = $("help-keys");
  for (const [keys, meaning] of KEYS) {
    const term = document.createElement("dt");
    for (const key of keys.split(" ")) {
      const box = document.createElement("kbd");
      box.textContent = key;
      term.append(box, " ");
    }
    const text = document.createElement("dd");
    text.textContent = meaning;
    list.append(term, text);
  }
  const help = () => {
    $("help").showModal();
    $("help").scrollTop = 0; // the browser scrolls to the button that it focuses
  };
  $("open-help").addEventListener("click", help);
  $("help-close").addEventListener("click", () => $("help").close());
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("dialog, select, input:not([type=radio], [type=range])")) return;
    if (event.key === "?") return run(event, help);
    if (event.key === "o") return run(event, act.open);
    if (!isViewing()) return;
    if (event.key === " ") {
      if (event.target.closest("button, label")) return; // presses it
      return run(event, () => event.repeat || act.peek(true));
    }
    const mode = MODES[Number(event.key) - 1];
    if (mode) return run(event, () => act.mode(mode));
    const others = { s: act.save, e: act.export, b: act.share, i: act.inside, f: act.fullscreen, Escape: act.stop };
    const steps = { "[": () => act.step(-1), "]": () => act.step(1) };
    const found = { ...others, ...steps }[event.key];
    if (found) run(event, found);
  });
  addEventListener("keyup", (event) => event.key === " " && act.peek(false));
  addEventListener("blur", () => act.peek(false));
}

function run(event, act) {
  event.preventDefault();
  act();
}
