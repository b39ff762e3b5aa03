// The dialog that exports the picture, or the part in the window, to a file, with the options of `srno upscale`.

import { estimateExport, makeFile, pause } from "./api.js";
import { readSettings, saveSettings } from "./keep.js";
import { nameOf } from "./labels.js";
import { amount, announce, download, duration } from "./messages.js";

const $ = (id) => document.getElementById(id);
const LARGEST_SIDE = 2 ** 31 - 1;
const LARGEST_SCALE = 512;
const ESTIMATE_DELAY_MS = 250; // after the last change of an option
const REMEMBERED = ["by", "scale", "fit", "depth", "quality"];

export class Exporter {
  /** `current()` returns the picture, the model and the view. */
  constructor({ formats, current }) {
    Object.assign(this, { formats, current, control: null });
    this.dialog = $("export");
    for (const { name } of formats) $("format").append(new Option(name, name));
    const kept = readSettings().export ?? {};
    for (const id of REMEMBERED) if (kept[id]) $(id).value = kept[id];
    $("open-export").addEventListener("click", () => this.open());
    $("export-close").addEventListener("click", () => (this.control ? this.control.abort() : this.dialog.close()));
    $("export-start").addEventListener("click", () => this.start());
    $("order").addEventListener("submit", (event) => {
      event.preventDefault(); // Enter in a field
      this.start();
    });
    $("part").addEventListener("input", () => this.#proposeSize());
    $("order-fields").addEventListener("input", () => this.update());
    this.dialog.addEventListener("close", () => this.control?.abort());
  }

  open() {
    if (!$("width").value) this.#proposeSize();
    $("export-done").replaceChildren();
    this.update();
    this.dialog.showModal();
  }

  /** Adapt to another picture: its size and its format. */
  reset() {
    this.control?.abort();
    this.dialog.close();
    $("width").value = $("height").value = "";
    $("part").value = "whole";
    $("format").value = ["JPEG", "HEIF"].includes(this.current().picture.format) ? "JPEG" : "PNG";
  }

  /** Left, top, right and bottom of what is exported, in whole pixels of the picture. */
  get box() {
    const { picture, view } = this.current();
    if ($("part").value === "whole") return [0, 0, picture.width, picture.height];
    const { left, top, right, bottom } = view.visible();
    const { x, y } = view.scales;
    const end = [Math.min(picture.width, Math.ceil(right / x)), Math.min(picture.height, Math.ceil(bottom / y))];
    return [Math.floor(left / x), Math.floor(top / y), ...end];
  }

  /** Pixels of the picture that are exported. */
  get source() {
    const [left, top, right, bottom] = this.box;
    return { width: right - left, height: bottom - top };
  }

  #proposeSize() {
    $("width").value = this.source.width * 4;
    $("height").value = this.source.height * 4;
  }

  /** Show the fields that apply, and the size of the result. */
  update() {
    const by = $("by").value;
    $("ensemble-row").hidden = $("part").value !== "whole";
    for (const row of this.dialog.querySelectorAll("[data-by]")) row.hidden = !row.dataset.by.split(" ").includes(by);
    const format = this.formats.find(({ name }) => name === $("format").value);
    $("quality-row").hidden = format.lossless || format.name === "GIF";
    $("depth").disabled = !format.bits.includes(16);
    const { size, problem } = this.outcome();
    $("export-start").disabled = !size;
    $("outcome").textContent = problem ?? this.#describe(size);
    $("outcome").dataset.problem = !!problem;
    this.estimating?.abort(); // of what the fields said before
    if (size) this.#estimate(size);
  }

  #describe({ width, height }) {
    const number = (value) => value.toLocaleString("en");
    return `Gives ${number(width)} × ${number(height)} pixels by ${nameOf(this.current().model)}.`;
  }

  /** Ask the server how long the export takes, how large the file is, and whether there is memory for it. */
  async #estimate(size) {
    const { signal } = (this.estimating = new AbortController());
    try {
      await pause(ESTIMATE_DELAY_MS, signal);
      const { bytes, seconds } = await estimateExport(this.current().picture, this.options(), signal);
      const time = seconds === null ? "" : `, about ${duration(seconds)}`;
      $("outcome").textContent = `${this.#describe(size)} About ${amount(bytes)}${time}.`;
    } catch (error) {
      if (signal.aborted) return;
      $("outcome").textContent = error.message;
      $("outcome").dataset.problem = true;
      $("export-start").disabled = true;
    }
  }

  /** The size of the result, computed like on the server, or what is wrong with the fields. */
  outcome() {
    const { source } = this;
    const least = $("part").value === "whole" ? 0 : 1;
    const number = (id) => Number($(id).value || NaN);
    const { value: by } = $("by");
    const x = number("width") / source.width;
    const y = number("height") / source.height;
    const fit = $("fit").value;
    const factor = { scale: number("scale"), width: x, height: y, size: fit === "cover" ? Math.max(x, y) : Math.min(x, y) }[by];
    if (least && factor < least) return { problem: "A part is enlarged: give a scale of at least 1." };
    if (!(factor > 0 && factor <= LARGEST_SCALE)) {
      return { problem: by === "scale" ? `Give a scale above 0, up to ${LARGEST_SCALE}.` : `Give a size of at least one pixel, up to ×${LARGEST_SCALE}.` };
    }
    if (by === "size" && fit !== "contain") return checked(number("width"), number("height"));
    return checked(round(source.width * factor), round(source.height * factor));
  }

  options() {
    const by = $("by").value;
    const size = { scale: $("scale").value, width: $("width").value, height: $("height").value };
    const format = this.formats.find(({ name }) => name === $("format").value);
    return {
      model: this.current().model,
      ...($("part").value === "whole" ? {} : { part: this.box }),
      ...(by === "size" ? { size: `${size.width}x${size.height}`, fit: $("fit").value } : { [by]: size[by] }),
      format: format.name,
      depth: format.bits.includes(16) ? $("depth").value : "keep",
      ...(format.lossless || format.name === "GIF" ? {} : { quality: $("quality").value }),
      metadata: $("metadata").checked,
      ensemble: $("ensemble").checked,
    };
  }

  async start() {
    if (this.control || $("export-start").disabled) return;
    this.control = new AbortController();
    this.estimating?.abort();
    saveSettings({ export: Object.fromEntries(REMEMBERED.map((id) => [id, $(id).value])) });
    this.#busy(true);
    try {
      const { picture } = this.current();
      const report = (progress) => this.#report(progress);
      this.#finish(await makeFile(picture, "exports", this.options(), report, this.control.signal));
    } catch (error) {
      $("export-done").textContent = this.control.signal.aborted ? "Stopped." : error.message;
    } finally {
      this.control = null;
      this.#busy(false);
    }
  }

  #busy(busy) {
    $("order-fields").disabled = busy;
    $("export-progress").hidden = !busy;
    $("export-share").value = 0;
    $("export-eta").textContent = busy ? "Starting…" : "";
    $("export-start").hidden = busy;
    $("export-close").textContent = busy ? "Stop" : "Close";
    if (busy) $("export-done").replaceChildren();
  }

  #report({ share, seconds, waiting }) {
    $("export-share").value = share;
    const left = seconds === null ? "" : ` · about ${duration(seconds)} left`;
    $("export-eta").textContent = waiting ? "Waiting for another export…" : `${Math.floor(share * 100)} %${left}`;
  }

  #finish({ file, name, bytes, width, height, notes }) {
    const link = download(file, name);
    link.textContent = name;
    $("export-done").replaceChildren(link, ` – ${width} × ${height} pixels, ${amount(bytes)}. `, notes.join("; "));
    announce(`Exported ${name}`);
  }
}

const round = (value) => Math.max(1, Math.floor(value + 0.5));

function checked(width, height) {
  const valid = [width, height].every((side) => Number.isInteger(side) && side >= 1 && side <= LARGEST_SIDE);
  return valid ? { size: { width, height } } : { problem: "Give a size in whole pixels." };
}
