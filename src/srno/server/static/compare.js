// What lies over the picture when it is compared with bicubic: the divider, the lens, the names.

const STEP = 0.02; // of the width, per press of a key

export class Compare {
  constructor(stage, elements, { onMode, onChange }) {
    Object.assign(this, { stage, elements, onMode, onChange });
    const { modes, divider } = elements;
    modes.addEventListener("change", (event) => this.setMode(event.target.value));
    divider.addEventListener("pointerdown", (event) => this.#grab(event));
    divider.addEventListener("keydown", (event) => this.#key(event));
  }

  setMode(mode) {
    this.stage.mode = mode;
    this.onMode(mode);
    this.place();
  }

  /** Put everything where it belongs. `after` names what is compared with bicubic. */
  place(after = this.after) {
    this.after = after;
    const { stage, elements } = this;
    const { divider, lens, before, name } = elements;
    const { mode, ratio } = stage;
    divider.hidden = mode !== "divider";
    lens.hidden = mode !== "lens";
    before.hidden = name.hidden = mode === "off";
    stage.element.dataset.mode = mode;
    stage.element.dataset.upright = stage.upright;
    name.textContent = after;
    divider.style.left = `${stage.split * 100}%`;
    divider.setAttribute("aria-valuenow", Math.round(stage.split * 100));
    divider.setAttribute("aria-valuetext", `${Math.round(stage.split * 100)} per cent bicubic`);
    before.style.maxWidth = mode === "divider" ? `calc(${stage.split * 100}% - 1.5rem)` : "";
    name.style.maxWidth = mode === "divider" ? `calc(${(1 - stage.split) * 100}% - 1.5rem)` : "";
    const size = (2 * stage.lensRadius) / ratio;
    const { x, y } = stage.lens ?? { x: stage.canvas.width / 2, y: stage.canvas.height / 2 };
    lens.style.width = lens.style.height = `${size}px`;
    lens.style.transform = `translate(${x / ratio - size / 2}px, ${y / ratio - size / 2}px)`;
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
    const target = { ArrowLeft: split - STEP, ArrowRight: split + STEP, Home: 0, End: 1 }[event.key];
    if (target === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    this.#moveDivider(target);
  }
}
