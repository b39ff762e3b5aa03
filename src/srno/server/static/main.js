// The page: opens pictures, one after the other, and connects the controls to the viewer.

import { Address, readAddress } from "./address.js";
import * as api from "./api.js";
import { Clipper } from "./clip.js";
import { Exporter } from "./export.js";
import { findFile, keepFile, readSettings, saveSettings } from "./keep.js";
import { listenForKeys } from "./keys.js";
import { BICUBIC, FILTERS, nameOf, partsOf, sourceOf } from "./labels.js";
import { announce, clearErrors, showError } from "./messages.js";
import { acceptedTypes, describeLimits, listen, refusal, showExamples } from "./open.js";
import { Queue } from "./queue.js";
import { saveView } from "./save.js";
import { Viewer, serverAnswers } from "./viewer.js";

const BASE_PIXELS = 1.5e6; // largest copy of the picture, stretched until tiles arrive
const MODES = ["off", "divider", "side", "lens"];
const VIEWER_IDS = ["stage", "tools", "title", "open-other"];
const TITLE = document.title;
const CLEAN_MS = 150; // the slider rests for so long before its strength is computed

const $ = (id) => document.getElementById(id);

class Page {
  constructor(about) {
    const kept = readSettings();
    this.about = about;
    this.choice = {
      model: about.models.includes(kept.model) ? kept.model : about.models[0],
      against: [...FILTERS, ...about.models].includes(kept.against) ? kept.against : BICUBIC,
    };
    this.viewer = new Viewer({
      limits: about,
      choice: this.choice,
      split: kept.split ?? 0.5,
      onRest: () => this.#rested(),
      onPoint: (place) => this.inside?.point(place),
    });
    this.queue = new Queue((entry) => {
      clearErrors();
      this.open(entry);
    });
    this.address = new Address((state) => this.#go(state));
    const current = () => ({ ...this.choice, picture: this.viewer.picture, view: this.viewer.view });
    this.exporter = new Exporter({ formats: about.formats, current });
    this.clipper = new Clipper({ current });
    this.#controls();
    this.viewer.compare.setMode(MODES.includes(kept.mode) ? kept.mode : "off");
  }

  get isViewing() {
    return !!this.viewer.sources;
  }

  #controls() {
    const { about, viewer } = this;
    const { motion } = viewer;
    $("limits").textContent = describeLimits(about);
    $("file").accept = acceptedTypes(about);
    for (const model of about.models) $("model").append(new Option(model, model));
    $("model-choice").hidden = about.models.length < 2;
    $("model").addEventListener("change", () => this.choose({ model: this.#sourceFor($("model").value) }));
    $("clean").addEventListener("input", () => {
      this.#showClean(Number($("clean").value));
      clearTimeout(this.cleaning);
      this.cleaning = setTimeout(() => this.choose({ model: sourceOf($("model").value, Number($("clean").value)) }), CLEAN_MS);
    });
    $("against").addEventListener("change", () => this.choose({ against: $("against").value }));
    this.#listSources();
    const choose = () => $("file").click();
    const act = {
      open: choose,
      mode: (mode) => viewer.compare.setMode(mode),
      peek: (on) => this.isViewing && viewer.compare.peek(on),
      save: () => this.isViewing && saveView(viewer),
      export: () => this.exporter.open(),
      share: () => this.clipper.open(),
      inside: () => this.toggleInside(),
      fullscreen,
      stop: () => viewer.stop(),
      step: (by) => this.queue.step(by),
    };
    const clicks = {
      "open-other": choose,
      choose,
      home: () => this.home(),
      "zoom-in": () => motion.zoomBy(2),
      "zoom-out": () => motion.zoomBy(1 / 2),
      "zoom-fit": () => motion.fit(),
      full: fullscreen,
      "save-view": act.save,
      stop: act.stop,
      "open-inside": act.inside,
      "close-inside": act.inside,
    };
    for (const [id, click] of Object.entries(clicks)) $(id).addEventListener("click", click);
    const { suffixes } = about.reads;
    listen({ input: $("file"), veil: $("veil"), suffixes, onFiles: (files) => this.add(files), onReject: showError });
    $("examples").hidden = about.examples.length === 0;
    showExamples($("examples").querySelector("ul"), about.examples, (name) => this.openExample(name));
    listenForKeys(act, () => this.isViewing);
    // A control that was used with the pointer gives the keys back to the picture: Space would press it again, arrows change it.
    const giveBack = () => this.isViewing && document.body.dataset.input !== "keys" && $("stage").focus({ preventScroll: true });
    for (const id of ["modes", "against", "model"]) $(id).addEventListener("change", giveBack);
    document.querySelector(".zoomer").addEventListener("click", giveBack);
    // The ring around the picture is for people who move the focus.
    addEventListener("keydown", (event) => event.key === "Tab" && (document.body.dataset.input = "keys"));
    addEventListener("pointerdown", () => (document.body.dataset.input = "pointer"));
    if (readSettings().inside) this.toggleInside();
  }

  /** The source of a model with the strength that suits the picture. */
  #sourceFor(model) {
    return sourceOf(model, this.about.cleanable.includes(model) ? (this.viewer.picture?.clean ?? 0) : 0);
  }

  #showClean(clean) {
    const { picture } = this.viewer;
    $("clean").value = clean;
    $("clean-value").textContent = clean;
    $("clean-auto").hidden = clean !== (picture?.clean ?? 0);
    const reason = picture?.compression ? `${picture.compression} suits ${picture.clean}` : "the file is not compressed, or does not say so";
    $("clean-choice").title = `How strongly to remove compression artefacts: ${reason}`;
  }

  /** Offer a filter or another model as the other side, never the model itself. */
  #listSources() {
    const { choice, about } = this;
    const models = about.models.filter((model) => model !== choice.model);
    if (![...FILTERS, ...models].includes(choice.against)) choice.against = BICUBIC;
    $("against").replaceChildren(...[...FILTERS, ...models].map((source) => new Option(nameOf(source), source)));
    $("against").value = choice.against;
    const { model, clean } = partsOf(choice.model, about.cleanable);
    $("model").value = model;
    $("clean-choice").hidden = !about.cleanable.includes(model);
    this.#showClean(clean);
  }

  choose(changed) {
    this.viewer.choose(() => {
      Object.assign(this.choice, changed);
      this.#listSources();
    });
    saveSettings({ ...this.choice, model: partsOf(this.choice.model, this.about.cleanable).model });
  }

  // Open pictures

  /** Open the first of several files; the others wait in the queue. */
  add(files) {
    clearErrors();
    const added = this.queue.add(files);
    this.queue.show();
    this.open(added[0]).then(() => this.#keep(added));
  }

  /** Keep files in the browser, one after the other, so that a reload finds those that were not shown yet, too. */
  async #keep(entries) {
    for (const entry of entries) {
      if (entry.file.size > this.about.limits.bytes || !this.queue.entries.includes(entry)) continue;
      entry.key ??= await (entry.keeping ??= keepFile(entry.file));
      this.queue.save();
    }
  }

  openExample(name, state = null) {
    clearErrors();
    return this.open(this.queue.find({ example: name }) ?? { example: name }, state);
  }

  /** Open an entry of the queue, at the place of `state` if there is one. */
  async open(entry, state = null) {
    this.opening?.abort();
    const { signal } = (this.opening = new AbortController());
    document.body.dataset.opening = "true"; // style.css changes the cursor
    try {
      const file = (entry.file ??= await readEntry(entry));
      announce(`Opening ${file.name}`);
      const reason = await refusal(file, this.about.limits);
      if (reason) throw new Error(reason);
      const kept = entry.example ? null : (entry.key ?? (entry.keeping ??= keepFile(file)));
      const picture = await api.upload(file, signal);
      picture.renew = () => (picture.renewing ??= renew(picture, entry).finally(() => (picture.renewing = null)));
      const base = await fetchBase(picture, signal);
      if (!entry.example) entry.key = await kept;
      if (!signal.aborted) this.show(picture, base, entry, state);
    } catch (error) {
      if (!signal.aborted) this.#refused(entry, error);
    } finally {
      if (this.opening.signal === signal) delete document.body.dataset.opening;
    }
  }

  /** Say why a picture cannot be opened, and go on to the next one of those that were added with it. */
  #refused(entry, error) {
    showError(error.message);
    if (error.status === 0) return; // the server is away
    const next = this.queue.remove(entry);
    if (next) this.open(next);
  }

  show(picture, base, entry, state) {
    Object.assign(this, { entry });
    this.queue.select(entry);
    $("welcome").hidden = true;
    for (const id of VIEWER_IDS) $(id).hidden = false;
    $("name").textContent = picture.name;
    $("facts").textContent = `${picture.width} × ${picture.height}`;
    $("title").title = `${picture.name}, ${picture.width} × ${picture.height} pixels`; // both may be cut off
    document.title = `${picture.name} – srno`;
    this.viewer.show(picture, base);
    this.choice.model = this.#sourceFor(partsOf(this.choice.model, this.about.cleanable).model);
    this.#listSources();
    this.exporter.reset();
    this.clipper.reset();
    if (state) this.#apply(state);
    this.viewer.start();
  }

  /** Return to the start page. */
  home() {
    this.address.clear();
    this.#leavePicture();
  }

  #leavePicture() {
    this.opening?.abort();
    this.viewer.close();
    this.inside?.clear();
    for (const id of VIEWER_IDS) $(id).hidden = true;
    $("queue").hidden = true;
    $("welcome").hidden = false;
    document.title = TITLE;
    $("choose").focus();
  }

  // The address

  /** Show what the address says, after a reload or when the user goes back. */
  async start() {
    const state = readAddress();
    if (state) this.queue.restore();
    this.address.settle(state);
    if (state) await this.#go(state);
  }

  async #go(state) {
    if (!state) return this.isViewing && this.#leavePicture();
    const { picture, example } = state;
    if (this.isViewing && (picture ? this.entry.key === picture : this.entry.example === example)) {
      this.#apply(state);
      return this.viewer.start();
    }
    if (example) return this.openExample(example, state);
    return this.open(this.queue.find(state) ?? { key: picture }, state);
  }

  #apply({ model, with: against, mode, split, place }) {
    if (model && this.about.models.includes(partsOf(model, this.about.cleanable).model)) this.choice.model = model;
    this.choice.against = against ?? this.choice.against;
    this.#listSources();
    this.viewer.apply({ mode: MODES.includes(mode) ? mode : null, split: Number.parseFloat(split) / 100, place });
  }

  /** The window is at rest: write it into the address, and show its inside. */
  #rested() {
    const { viewer, entry } = this;
    this.inside?.update(viewer, this.choice.model);
    if (!entry.key && !entry.example) return; // the browser could not keep the file
    const { mode, split } = viewer.stage;
    this.address.write({ picture: entry.key, example: entry.example, place: viewer.view.place, mode, split, ...this.choice });
  }

  // Inside the operator

  /** Open or close the panel; its code is loaded when it is opened. */
  async toggleInside() {
    const open = $("inside").hidden;
    $("inside").hidden = !open;
    $("open-inside").setAttribute("aria-expanded", open);
    saveSettings({ inside: open });
    if (!open) {
      this.inside?.clear();
      this.inside = null;
      return;
    }
    const { Inside } = await import("./inside.js");
    if ($("inside").hidden) return;
    this.inside = new Inside($("maps"));
    if (this.isViewing) this.inside.update(this.viewer, this.choice.model);
  }
}

/** Fetch the picture itself, reduced if it is large. */
function fetchBase(picture, signal) {
  const { width, height } = picture;
  const shrink = Math.min(1, Math.sqrt(BASE_PIXELS / (width * height)));
  const size = [width, height].map((side) => Math.max(1, Math.floor(side * shrink)));
  return api.fetchTile(picture, { source: BICUBIC, level: size.join(), rect: [0, 0, ...size].join() }, signal);
}

/** The file of an entry whose picture was not shown since the page was loaded. */
async function readEntry({ key, example }) {
  const file = example ? await api.fetchExample(example) : await findFile(key);
  if (!file) throw new Error("This browser no longer has the picture of this address. Open it again.");
  return file;
}

/** Upload a picture that the server has dropped; the browser's copy does not depend on the file on the disk. */
async function renew(picture, { file, key }) {
  const { id } = await api.upload((key && (await findFile(key))) || file);
  picture.id = id;
}

function fullscreen() {
  if (document.fullscreenElement) document.exitFullscreen();
  else document.documentElement.requestFullscreen?.().catch(() => {});
}

/** What the server says about itself; waits for a server that is away. */
async function askServer() {
  try {
    return await api.about();
  } catch (error) {
    const dismiss = showError(error.message);
    const about = await serverAnswers();
    dismiss();
    return about;
  }
}

const page = new Page(await askServer());
document.body.dataset.ready = "true";
await page.start();
if ("serviceWorker" in navigator) navigator.serviceWorker.register("/sw.js").catch(() => {});
