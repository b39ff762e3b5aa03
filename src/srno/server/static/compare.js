// Comparison of two sources: the divider, the lens and the labels over the picture.

const KEY_STEP = 0.02; // share of the width per key press

export class Compare {
  constructor(stage, elements, { onMode, onChange, onPeek, onSplit }) {
    Object.assign(this, { stage, elements, onMode, onChange, onPeek, onSplit, labels: { before: "", after: "" } });
    const { modes, divider } = elements;
    modes.addEventListener("change", (event) => this.setMode(event.target.value));
    divider.addEventListener("pointerdown", (event) => this.#grab(event));
    divider.addEventListener("keydown", (event) => this.#key(event));
  }

  setMode(mode) {
    this.stage.mode = mode;
    for (const input of this.elements.modes.querySelectorAll("input")) input.checked = input.value === mode;
    this.onMode(mode);
    this.place();
  }

  /** Position all elements. `labels` name what is shown on the left, or around the lens, and on the right, or in it. */
  place(labels = this.labels) {
    this.labels = labels;
    const { stage, elements } = this;
    const { divider, lens, before, name } = elements;
    const { mode, ratio } = stage;
    divider.hidden = mode !== "divider";
    lens.hidden = mode !== "lens";
    before.hidden = mode === "off";
    stage.element.dataset.mode = mode;
    stage.element.dataset.upright = stage.upright;
    write(before, labels.before);
    write(name, stage.peeking ? labels.before : labels.after);
    divider.style.left = `${stage.split * 100}%`;
    const share = Math.round(stage.split * 100);
    divider.setAttribute("aria-label", `Divider: ${labels.before} on its left, ${labels.after} on its right`);
    divider.setAttribute("aria-valuenow", share);
    divider.setAttribute("aria-valuetext", `${share} per cent ${labels.before}`);
    before.style.maxWidth = mode === "divider" ? `calc(${stage.split * 100}% - 1.5rem)` : "";
    name.style.maxWidth = mode === "divider" ? `calc(${(1 - stage.split) * 100}% - 1.5rem)` : "";
    const size = (2 * stage.lensRadius) / ratio;
    const { x, y } = stage.lens ?? { x: stage.canvas.width / 2, y: stage.canvas.height / 2 };
    lens.style.width = lens.style.height = `${size}px`;
    lens.style.transform = `translate(${x / ratio - size / 2}px, ${y / ratio - size / 2}px)`;
  }

  /** Show the left side everywhere while `on`. */
  peek(on) {
    if (this.stage.peeking === on) return;
    this.stage.peeking = on;
    this.place();
    this.onPeek(); // the other side may have to be computed
    this.onChange();
  }

  moveLens(place) {
    this.stage.lens = place;
    if (this.stage.mode !== "lens") return;
    this.place();
    this.onChange();
  }

  #moveDivider(share) {
    this.stage.split = Math.min(1, Math.max(0, share));
    this.place();
    this.onChange();
    this.onSplit(this.stage.split);
  }

  #grab(event) {
    const { divider } = this.elements;
    event.preventDefault();
    divider.focus();
    divider.setPointerCapture(event.pointerId);
    const box = this.stage.canvas.getBoundingClientRect();
    const offset = event.clientX - box.left - this.stage.split * box.width;
    const move = ({ clientX }) => this.#moveDivider((clientX - offset - box.left) / box.width);
    const end = () => divider.removeEventListener("pointermove", move);
    divider.addEventListener("pointermove", move);
    for (const name of ["pointerup", "pointercancel"]) divider.addEventListener(name, end, { once: true });
  }

  #key(event) {
    const { split } = this.stage;
    const target = { ArrowLeft: split - KEY_STEP, ArrowRight: split + KEY_STEP, Home: 0, End: 1 }[event.key];
    if (target === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    this.#moveDivider(target);
  }
}

/** Change a text only if it differs, which spares the browser a layout. */
function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
