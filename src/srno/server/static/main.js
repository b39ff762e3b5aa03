// The page: opens pictures and keeps the window sharp.

import { Address, readAddress } from "./address.js";
import * as api from "./api.js";
import { Clipper } from "./clip.js";
import { Compare } from "./compare.js";
import { Exporter } from "./export.js";
import { findFile, keepFile, readSettings, saveSettings } from "./keep.js";
import { listenForKeys } from "./keys.js";
import { BICUBIC, FILTERS, Pace, labelOf, nameOf, zoomText } from "./labels.js";
import { announce, clearErrors, download, duration, showError } from "./messages.js";
import { Motion } from "./motion.js";
import { describeLimits, listen, refusal, showExamples } from "./open.js";
import { Queue } from "./queue.js";
import { Stage } from "./stage.js";
import { Layer } from "./tiles.js";
import { View } from "./view.js";

const REST_DELAY_MS = 80; // without movement, before tiles are requested
const STATE_MS = 500; // between two questions about the kernel integral
const RETRY_MS = { busy: 500, gone: 3000 }; // after an error that may pass
const BASE_PIXELS = 1.5e6; // largest copy of the picture, stretched until tiles arrive
const LONGEST_TILE_SIDE = { operator: 192, filter: 512 }; // device pixels
const SLOW_SECONDS = 1.5; // from which on the progress is written out

const VIEWER_IDS = ["stage", "tools", "title", "open-other"];
const TITLE = document.title;

const $ = (id) => document.getElementById(id);

class Page {
  constructor(about) {
    const kept = readSettings();
    this.about = about;
    this.model = about.models.includes(kept.model) ? kept.model : about.models[0];
    this.against = [...FILTERS, ...about.models].includes(kept.against) ? kept.against : BICUBIC;
    this.hover = null;
    this.waiting = []; // callbacks for when the window is sharp
    this.pace = new Pace();
    this.stage = new Stage($("stage"), $("canvas"), [...document.querySelectorAll(".chequer")], {
      onResize: () => this.resized(),
    });
    this.stage.split = kept.split ?? 0.5;
    this.queue = new Queue((entry) => this.open(entry));
    this.address = new Address((state) => this.#go(state));
    const elements = { modes: $("modes"), divider: $("divider"), lens: $("lens"), before: $("tag-before"), name: $("tag-after") };
    this.compare = new Compare(this.stage, elements, {
      onMode: (mode) => this.modeChanged(mode),
      onChange: () => this.stage.refresh(),
      onSplit: (split) => saveSettings({ split }),
    });
    this.motion = new Motion($("stage"), {
      locate: (event) => this.stage.locate(event),
      hasLens: () => this.stage.mode === "lens",
      on: {
        leave: () => this.leave(),
        goal: (view) => this.request(view),
        zoom: () => this.moved({ restart: true }),
        pan: () => this.moved({ restart: false }),
        hover: (place) => this.hovered(place),
      },
    });
    const current = () => ({ picture: this.picture, model: this.model, against: this.against, view: this.view });
    this.exporter = new Exporter({ formats: about.formats, current });
    this.clipper = new Clipper({ current });
    this.#controls();
    this.compare.setMode(["divider", "side", "lens"].includes(kept.mode) ? kept.mode : "off");
  }

  #controls() {
    const { about, motion } = this;
    $("limits").textContent = describeLimits(about.limits);
    for (const model of about.models) $("model").append(new Option(model, model));
    $("model").value = this.model;
    $("model-choice").hidden = about.models.length < 2;
    $("model").addEventListener("change", () => this.choose($("model").value, this.against));
    $("against").addEventListener("change", () => this.choose(this.model, $("against").value));
    this.#listAgainst();
    const choose = () => $("file").click();
    for (const id of ["open-other", "choose"]) $(id).addEventListener("click", choose);
    $("home").addEventListener("click", () => this.home());
    $("zoom-in").addEventListener("click", () => motion.zoomBy(2));
    $("zoom-out").addEventListener("click", () => motion.zoomBy(1 / 2));
    $("zoom-fit").addEventListener("click", () => motion.fit());
    $("full").addEventListener("click", () => this.fullscreen());
    $("save-view").addEventListener("click", () => this.saveView());
    $("stop").addEventListener("click", () => this.stop());
    listen({ input: $("file"), veil: $("veil"), onFiles: (files) => this.add(files), onReject: showError });
    $("examples").hidden = about.examples.length === 0;
    showExamples($("examples").querySelector("ul"), about.examples, (name) => this.openExample(name));
    const act = {
      open: choose,
      mode: (mode) => this.compare.setMode(mode),
      peek: (on) => this.layers && this.compare.peek(on),
      save: () => this.saveView(),
      export: () => this.exporter.open(),
      share: () => this.clipper.open(),
      fullscreen: () => this.fullscreen(),
      stop: () => this.stop(),
      step: (by) => this.queue.step(by),
    };
    listenForKeys(act, () => !!this.layers);
    // The ring around the picture is for people who move the focus.
    addEventListener("keydown", (event) => event.key === "Tab" && (document.body.dataset.input = "keys"));
    addEventListener("pointerdown", () => (document.body.dataset.input = "pointer"));
    document.addEventListener("visibilitychange", () => this.layers && (document.hidden ? this.halt() : this.rest()));
  }

  /** The other side may be a filter or another model, never the model itself. */
  #listAgainst() {
    const models = this.about.models.filter((model) => model !== this.model);
    if (!FILTERS.includes(this.against) && !models.includes(this.against)) this.against = BICUBIC;
    $("against").replaceChildren(...[...FILTERS, ...models].map((source) => new Option(nameOf(source), source)));
    $("against").value = this.against;
  }

  // Open pictures

  /** Open the first of several files; the others wait in the queue. */
  add(files) {
    const first = this.queue.add(files);
    this.queue.show();
    this.open(first);
  }

  async openExample(name, state = null) {
    try {
      const file = await api.fetchExample(name);
      await this.open({ file, example: name }, state);
    } catch (error) {
      showError(error.message);
    }
  }

  /** Open an entry of the queue, at the place of `state` if there is one, or in the same view if it is opened again. */
  async open(entry, state = null, view = null) {
    clearErrors();
    const { file } = entry;
    const reason = await refusal(file, this.about.limits);
    if (reason) {
      this.queue.remove(entry);
      return showError(reason);
    }
    this.opening?.abort();
    const { signal } = (this.opening = new AbortController());
    document.body.dataset.opening = "true"; // style.css changes the cursor
    announce(`Opening ${file.name}`);
    try {
      const picture = await api.upload(file, signal);
      const base = await this.#base(picture, signal);
      if (!entry.example) entry.key ??= await keepFile(file);
      if (!signal.aborted) this.show(picture, base, entry, state, view);
    } catch (error) {
      if (signal.aborted) return;
      this.queue.remove(entry);
      showError(error.message);
    } finally {
      if (this.opening.signal === signal) delete document.body.dataset.opening;
    }
  }

  /** Fetch the picture itself, reduced if it is large. */
  #base({ id, width, height }, signal) {
    const shrink = Math.min(1, Math.sqrt(BASE_PIXELS / (width * height)));
    const size = [width, height].map((side) => Math.max(1, Math.floor(side * shrink)));
    return api.fetchTile(id, { source: BICUBIC, level: size.join(), rect: [0, 0, ...size].join() }, signal);
  }

  show(picture, base, entry, state, view) {
    this.close();
    Object.assign(this, { picture, base, entry, layers: new Map() });
    this.queue.select(entry);
    $("welcome").hidden = true;
    for (const id of VIEWER_IDS) $(id).hidden = false;
    $("name").textContent = picture.name;
    $("facts").textContent = `${picture.width} × ${picture.height}`;
    document.title = `${picture.name} – srno`;
    this.exporter.reset();
    this.clipper.reset();
    this.view = view ?? new View(picture, this.stage.pane, this.about.zoom);
    if (state) this.#apply(state);
    this.motion.attach(this.view);
    this.stage.scene = () => ({ view: this.view, ...this.#sides(this.view) });
    $("stage").focus({ preventScroll: true });
    this.resized();
    this.#follow();
  }

  /** Return to the start page. */
  home() {
    this.address.clear();
    this.#leavePicture();
  }

  #leavePicture() {
    this.opening?.abort();
    this.close();
    this.motion.attach(null);
    this.stage.scene = null;
    for (const id of VIEWER_IDS) $(id).hidden = true;
    $("queue").hidden = true;
    $("welcome").hidden = false;
    document.title = TITLE;
    $("choose").focus();
  }

  close() {
    this.following?.abort();
    for (const layer of this.layers?.values() ?? []) layer.halt();
    this.layers = null;
    clearTimeout(this.timer);
    this.timer = null;
  }

  // The address

  /** Show what the address says, after a reload or when the user goes back. */
  async start() {
    const state = readAddress();
    this.address.settle(state);
    if (state) await this.#go(state);
  }

  async #go(state) {
    if (!state) return this.layers && this.#leavePicture();
    const { picture, example } = state;
    if (this.layers && (picture ? this.entry.key === picture : this.entry.example === example)) {
      this.#apply(state);
      return this.resized();
    }
    if (example) return this.openExample(example, state);
    const known = this.queue.find(picture);
    const file = known?.file ?? (await findFile(picture));
    if (file) return this.open(known ?? { file, key: picture }, state);
    showError("This browser no longer has the picture of this address. Open it again.");
  }

  #apply(state) {
    this.applying = true; // nothing is requested or written into the address on the way
    if (["off", "divider", "side", "lens"].includes(state.mode)) this.compare.setMode(state.mode);
    const split = Number.parseFloat(state.split) / 100;
    if (split >= 0 && split <= 1) this.stage.split = split;
    if (this.about.models.includes(state.model)) this.model = $("model").value = state.model;
    this.against = state.with ?? this.against;
    this.#listAgainst();
    this.applying = false;
    if (!state.place) return;
    this.view.resize(this.stage.pane);
    this.view.centreOn(state.place);
  }

  // Sources of pixels

  choose(model, against) {
    this.leave();
    Object.assign(this, { model, against });
    this.#listAgainst();
    saveSettings({ model, against: this.against });
    this.rest();
    this.#follow();
  }

  /** The layers of both sides; below ×1 nothing is enlarged, and both are bicubic. */
  #sides(view) {
    const [before, after] = view.scale < 1 ? [BICUBIC, BICUBIC] : [this.against, this.model];
    return { before: this.layer(before), after: this.layer(after) };
  }

  /** The layers that the window needs. */
  #inUse(view) {
    const { before, after } = this.#sides(view);
    return new Set(this.stage.mode === "off" ? [after] : [before, after]);
  }

  layer(source) {
    if (!this.layers.has(source)) {
      const operator = !FILTERS.includes(source);
      const { picture, base, about } = this;
      const layer = new Layer({
        picture,
        source,
        base,
        under: operator ? this.layer(BICUBIC) : null,
        longest: operator ? LONGEST_TILE_SIDE.operator : LONGEST_TILE_SIDE.filter,
        parallel: operator ? Math.min(4, about.threads + 1) : 1,
        onChange: () => this.#changed(),
        onFail: (error) => this.failed(error),
      });
      layer.version = operator ? 1 : 0;
      this.layers.set(source, layer);
    }
    return this.layers.get(source);
  }

  #changed() {
    this.stage.refresh();
    this.progress();
  }

  /** Ask how far the kernel integrals of the models have settled, and render again with better ones. */
  async #follow() {
    this.following?.abort();
    const { signal } = (this.following = new AbortController());
    const models = new Set([this.model, this.against].filter((source) => !FILTERS.includes(source)));
    try {
      while (models.size) {
        for (const model of models) {
          const { version, versions } = await api.fetchState(this.picture.id, model, signal);
          const layer = this.layer(model);
          if (version > layer.version) {
            layer.version = version;
            if (!this.motion.moving && !this.timer) this.rest();
          }
          if (version === versions) models.delete(model);
        }
        if (models.size) await api.pause(STATE_MS, signal);
      }
    } catch (error) {
      if (!signal.aborted) this.failed(error);
    }
  }

  /** Recover from an error: the server may have dropped the picture (404), be busy (503) or away (0). */
  failed(error) {
    if (error.status === 404) {
      if (!document.body.dataset.opening) this.open(this.entry, null, this.view);
    } else if (error.status === 503) {
      this.#restIn(RETRY_MS.busy);
    } else {
      const dismiss = showError(error.message);
      if (error.status === 0) this.#retry(dismiss);
    }
    if (this.layers) this.progress();
  }

  /** Wait until the server answers again. */
  async #retry(dismiss) {
    if (this.retrying) return;
    this.retrying = true;
    for (;;) {
      await api.pause(RETRY_MS.gone);
      try {
        await api.about();
        break;
      } catch {
        // still away
      }
    }
    this.retrying = false;
    dismiss();
    if (!this.layers) return;
    this.rest();
    this.#follow();
  }

  // Movement and rest

  leave() {
    this.halted = false;
    if (this.view.snapped) for (const layer of this.#inUse(this.view)) layer.remember(this.view);
    this.halt();
    this.progress();
  }

  halt() {
    for (const layer of this.layers.values()) layer.halt();
  }

  /** Stop computing the pixels of this window; a movement starts again. */
  stop() {
    if (!this.layers || this.sharp) return;
    this.halted = true;
    for (const layer of this.#inUse(this.view)) layer.stopped = !layer.isSharp(this.view);
    this.halt();
    this.progress();
    announce("Stopped");
  }

  moved({ restart }) {
    this.halted = false;
    this.stage.refresh();
    this.readOut();
    this.progress();
    if (restart || !this.timer) this.#restIn(REST_DELAY_MS);
  }

  #restIn(time) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.rest(), time);
  }

  modeChanged(mode) {
    saveSettings({ mode });
    this.resized();
  }

  /** Request the tiles of a view, the bicubic ones first: they are there at once. */
  request(view) {
    if (document.hidden || this.halted) return;
    const wanted = this.#inUse(view);
    const missing = [...wanted].filter((layer) => layer.under && !layer.isSharp(view));
    if (missing.length) wanted.add(this.layer(BICUBIC));
    for (const layer of this.layers.values()) if (!wanted.has(layer)) layer.halt();
    for (const layer of [...wanted].sort((a, b) => !!a.under - !!b.under)) layer.want(view);
  }

  /** Snap the view and request the tiles of the window, unless something moves. */
  rest() {
    clearTimeout(this.timer);
    this.timer = null;
    if (!this.layers) return;
    if (this.motion.moving) return this.#restIn(REST_DELAY_MS);
    if (!this.view.snapped) this.view.snap(this.motion.anchor?.x, this.motion.anchor?.y);
    this.pace.restart();
    this.request(this.view);
    this.stage.refresh();
    this.readOut();
    this.progress();
    this.#writeAddress();
  }

  #writeAddress() {
    const { entry, model, against, stage } = this;
    const { mode, split } = stage;
    if (!entry.key && !entry.example) return; // the browser could not keep the file
    this.address.write({ picture: entry.key, example: entry.example, place: this.view.place, mode, model, against, split });
  }

  resized() {
    this.compare.place();
    if (!this.layers || this.applying) return;
    this.view.resize(this.stage.pane);
    this.rest();
  }

  hovered(place) {
    this.hover = place;
    this.compare.moveLens(place ?? this.stage.lens);
    this.readOut();
  }

  fullscreen() {
    if (document.fullscreenElement) document.exitFullscreen();
    else document.documentElement.requestFullscreen?.().catch(() => {});
  }

  // Status

  readOut() {
    const { view } = this;
    const zoom = view.scale;
    const middle = { x: view.pane.width / 2, y: view.pane.height / 2 };
    const place = view.toPicture(this.hover?.x ?? middle.x, this.hover?.y ?? middle.y);
    const digits = zoom < 2 ? 0 : zoom < 16 ? 1 : 2;
    $("zoom").textContent = `×${zoomText(zoom)}`;
    $("place").textContent = view.contains(place) ? `x ${place.x.toFixed(digits)}  y ${place.y.toFixed(digits)}` : "";
  }

  progress() {
    if (!this.layers) return;
    const { view } = this;
    const layers = [...this.#inUse(view)];
    const atRest = !this.motion.moving && !this.timer;
    const counts = layers.map((layer) => layer.count(view));
    const done = counts.reduce((sum, count) => sum + count.done, 0);
    const all = counts.reduce((sum, count) => sum + count.all, 0);
    const sharp = atRest && done === all;
    const { before, after } = this.#sides(view);
    this.compare.place({ before: labelOf(before, view), after: labelOf(after, view) });
    this.#showProgress(sharp || this.halted, atRest ? done : 0, all);
    const { dataset } = $("stage");
    dataset.sharp = sharp;
    dataset.settled = sharp && counts.every((count) => count.current);
    dataset.view = view.key();
    this.sharp = sharp;
    if (sharp || this.halted) for (const resolve of this.waiting.splice(0)) resolve();
    if (!sharp || dataset.announced === dataset.view) return;
    dataset.announced = dataset.view;
    const { x, y } = view.place;
    announce(`Zoom ${zoomText(view.scale)}, centre at ${x.toFixed(0)}, ${y.toFixed(0)}, ${labelOf(after, view)}`);
  }

  #showProgress(over, done, all) {
    $("computing").style.transform = `scaleX(${over ? 1 : done / all})`;
    $("computing").dataset.sharp = over;
    const slow = !over && this.pace.seconds > SLOW_SECONDS;
    $("busy").hidden = !slow;
    if (!slow) return;
    const left = this.pace.left(done, all);
    $("busy-share").value = done / all;
    $("busy-text").textContent = `${done} of ${all} tiles${left === null ? "" : `, about ${duration(left)}`}`;
  }

  /** Save what the window shows, once it is sharp. */
  async saveView() {
    if (!this.layers) return;
    if (!this.sharp && !this.halted) await new Promise((resolve) => this.waiting.push(resolve));
    if (!this.layers) return;
    const blob = await this.stage.snapshot();
    const { before, after } = this.#sides(this.view);
    const sources = this.stage.mode === "off" ? [after] : [before, after];
    // A source that has no pixels here is bicubic, and the name says so.
    const names = sources.map((layer) => (layer.isSharp(this.view) ? layer.source : BICUBIC));
    const stem = this.picture.name.replace(/\.\w+$/, "");
    const link = download(URL.createObjectURL(blob), `${stem}_view_${zoomText(this.view.scale)}x_${names.join("_")}.png`);
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    announce(`Saved ${link.download}`);
  }
}

try {
  const page = new Page(await api.about());
  document.body.dataset.ready = "true";
  await page.start();
} catch (error) {
  showError(error.message);
}
if ("serviceWorker" in navigator) navigator.serviceWorker.register("/sw.js").catch(() => {});
