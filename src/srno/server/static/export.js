// The dialog that writes the whole picture to a file, by the same request as `srno upscale`.

import { exportPicture } from "./api.js";

const $ = (id) => document.getElementById(id);
const LARGEST_SIDE = 2 ** 31 - 1;

export class Exporter {
  /** `current()` gives the picture and the model; `say` speaks to screen readers. */
  constructor({ formats, current, say }) {
    Object.assign(this, { formats, current, say, control: null });
    this.dialog = $("export");
    for (const { name } of formats) $("format").append(new Option(name, name));
    $("open-export").addEventListener("click", () => this.open());
    $("export-close").addEventListener("click", () => (this.control ? this.control.abort() : this.dialog.close()));
    $("export-start").addEventListener("click", () => this.start());
    $("order").addEventListener("submit", (event) => {
      event.preventDefault(); // Enter in a field
      this.start();
    });
    $("order-fields").addEventListener("input", () => this.update());
    this.dialog.addEventListener("close", () => this.control?.abort());
  }

  open() {
    const { picture } = this.current();
    $("width").value ||= picture.width * 4;
    $("height").value ||= picture.height * 4;
    $("export-done").replaceChildren();
    this.update();
    this.dialog.showModal();
  }

  forget() {
    this.control?.abort();
    $("width").value = $("height").value = "";
  }

  /** Show the fields that matter, and what will come out. */
  update() {
    const by = $("by").value;
    for (const row of this.dialog.querySelectorAll("[data-by]")) row.hidden = !row.dataset.by.split(" ").includes(by);
    const format = this.formats.find(({ name }) => name === $("format").value);
    $("quality-row").hidden = format.lossless || format.name === "GIF";
    $("depth").disabled = !format.bits.includes(16);
    const size = this.outcome();
    $("export-start").disabled = !size;
    $("outcome").textContent = size
      ? `Gives ${size.width.toLocaleString("en")} × ${size.height.toLocaleString("en")} pixels by ${this.current().model}.`
      : "Give a size of at least one pixel.";
  }

  /** The size that the request means; the same rule as the server's. */
  outcome() {
    const { picture } = this.current();
    const number = (id) => Number.parseFloat($(id).value);
    const { value: by } = $("by");
    const x = number("width") / picture.width;
    const y = number("height") / picture.height;
    const fit = $("fit").value;
    if (by === "size" && fit !== "contain") return checked(number("width"), number("height"));
    const factor = { scale: number("scale"), width: x, height: y, size: Math.min(x, y) }[by];
    return checked(round(picture.width * factor), round(picture.height * factor));
  }

  order() {
    const by = $("by").value;
    const size = { scale: $("scale").value, width: $("width").value, height: $("height").value };
    const format = this.formats.find(({ name }) => name === $("format").value);
    return {
      model: this.current().model,
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
    this.#busy(true);
    try {
      const { picture } = this.current();
      const done = await exportPicture(picture.id, this.order(), (facts) => this.#tell(facts), this.control.signal);
      this.#finish(done);
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
    $("export-eta").textContent = busy ? "Beginning…" : "";
    $("export-start").hidden = busy;
    $("export-close").textContent = busy ? "Stop" : "Close";
    if (busy) $("export-done").replaceChildren();
  }

  #tell({ share, seconds, waiting }) {
    $("export-share").value = share;
    const left = seconds === null ? "" : ` · about ${duration(seconds)} left`;
    $("export-eta").textContent = waiting ? "Waiting for another export…" : `${Math.floor(share * 100)} %${left}`;
  }

  #finish({ file, name, bytes, width, height, notes }) {
    const link = document.createElement("a");
    link.href = file;
    link.download = name;
    link.textContent = name;
    const size = bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
    $("export-done").replaceChildren(link, ` – ${width} × ${height} pixels, ${size}. `, notes.join("; "));
    link.click();
    this.say(`Exported ${name}`);
  }
}

const round = (value) => Math.max(1, Math.floor(value + 0.5));

function checked(width, height) {
  const fine = [width, height].every((side) => Number.isInteger(side) && side >= 1 && side <= LARGEST_SIDE);
  return fine ? { width, height } : null;
}

function duration(seconds) {
  const whole = Math.max(1, Math.round(seconds));
  return whole < 90 ? `${whole} s` : `${Math.round(whole / 60)} min`;
}
