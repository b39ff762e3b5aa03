// The dialog for pictures to share: before and after in one PNG, or a zoom into the picture as an animation.

import { makeFile } from "./api.js";
import { nameOf, zoomText } from "./labels.js";
import { amount, announce, download, duration } from "./messages.js";

const $ = (id) => document.getElementById(id);

export class Clipper {
  /** `current()` returns the picture, both sides and the view. */
  constructor({ current }) {
    Object.assign(this, { current, control: null, dialog: $("clip") });
    $("open-clip").addEventListener("click", () => this.open());
    $("clip-close").addEventListener("click", () => (this.control ? this.control.abort() : this.dialog.close()));
    $("clip-start").addEventListener("click", () => this.start());
    $("clip-order").addEventListener("submit", (event) => {
      event.preventDefault();
      this.start();
    });
    $("clip-fields").addEventListener("input", () => this.update());
    this.dialog.addEventListener("close", () => this.control?.abort());
  }

  open() {
    $("clip-done").replaceChildren();
    this.update();
    this.dialog.showModal();
  }

  reset() {
    this.control?.abort();
    this.dialog.close();
  }

  update() {
    const zoom = $("clip-kind").value !== "pair";
    for (const id of ["clip-width-row", "clip-split-row"]) $(id).hidden = !zoom;
    const { model, against } = this.current();
    const sides = zoom && !$("clip-split").checked ? nameOf(model) : `${nameOf(against)} and ${nameOf(model)}`;
    const { width, height } = this.#size();
    const [left, , right] = this.#box();
    const scale = width / (right - left); // smaller than on the screen if the frames are
    const enlarged = scale >= 1;
    $("clip-outcome").textContent = enlarged
      ? `${sides} at ×${zoomText(scale)}${zoom ? ", reached from the whole picture" : ""}, ${width} × ${height} pixels${zoom ? "" : " each"}.`
      : `Zoom in${zoom ? " or make the frames wider" : ""}: below ×1 nothing is enlarged, and both sides are bicubic.`;
    $("clip-outcome").dataset.problem = !enlarged;
    $("clip-start").disabled = !enlarged;
  }

  /** The part of the picture in the window, in its pixels. */
  #box() {
    const { view, picture } = this.current();
    const { left, top, right, bottom } = view.visible();
    const { x, y } = view.scales;
    return [left / x, top / y, Math.min(picture.width, right / x), Math.min(picture.height, bottom / y)];
  }

  /** Pixels of one picture: those of the window, or the chosen width for an animation. */
  #size() {
    const { left, top, right, bottom } = this.current().view.visible();
    const [width, height] = [right - left, bottom - top];
    if ($("clip-kind").value === "pair") return { width, height };
    const chosen = Math.min(width, Number.parseInt($("clip-width").value, 10));
    return { width: chosen, height: Math.max(16, Math.round((height * chosen) / width)) };
  }

  #options() {
    const { model, against } = this.current();
    const kind = $("clip-kind").value;
    const both = kind === "pair" || $("clip-split").checked;
    return { kind, model, ...(both ? { against } : {}), box: this.#box(), ...this.#size(), labels: $("clip-labels").checked };
  }

  async start() {
    if (this.control || $("clip-start").disabled) return;
    this.control = new AbortController();
    this.#busy(true);
    try {
      const report = ({ share, seconds, waiting }) => {
        $("clip-share").value = share;
        const left = seconds === null ? "" : ` · about ${duration(seconds)} left`;
        $("clip-eta").textContent = waiting ? "Waiting for an export…" : `${Math.floor(share * 100)} %${left}`;
      };
      const done = await makeFile(this.current().picture, "clips", this.#options(), report, this.control.signal);
      const link = download(done.file, done.name);
      link.textContent = done.name;
      $("clip-done").replaceChildren(link, ` – ${done.width} × ${done.height} pixels, ${amount(done.bytes)}.`);
      announce(`Made ${done.name}`);
    } catch (error) {
      $("clip-done").textContent = this.control.signal.aborted ? "Stopped." : error.message;
    } finally {
      this.control = null;
      this.#busy(false);
    }
  }

  #busy(busy) {
    $("clip-fields").disabled = busy;
    $("clip-progress").hidden = !busy;
    $("clip-share").value = 0;
    $("clip-eta").textContent = busy ? "Starting…" : "";
    $("clip-start").hidden = busy;
    $("clip-close").textContent = busy ? "Stop" : "Close";
    if (busy) $("clip-done").replaceChildren();
  }
}
