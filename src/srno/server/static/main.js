// The page: opens pictures, lifts them, and keeps the window sharp.

import * as api from "./api.js";
import { Compare } from "./compare.js";
import { Exporter } from "./export.js";
import { Motion } from "./motion.js";
import { describeLimits, listen, refusal, showExamples } from "./open.js";
import { Stage } from "./stage.js";
import { Layer } from "./tiles.js";
import { View } from "./view.js";

const BICUBIC = "bicubic";
const REST = 80; // ms without movement before pixels are asked for
const BASE_PIXELS = 2048 ** 2; // of the picture that is stretched until better is known
const LONGEST = { operator: 192, bicubic: 512 }; // sides of tiles, in device pixels

const ON_STAGE = ["stage", "tools", "title", "open-other"];

const $ = (id) => document.getElementById(id);

class Page {
  constructor(about) {
    this.about = about;
    this.model = about.models[0];
    this.hover = null;
    this.waiting = []; // those who want to know when the window is sharp
    this.stage = new Stage($("stage"), $("canvas"), { onResize: () => this.resized() });
    const elements = { modes: $("modes"), divider: $("divider"), lens: $("lens"), before: $("tag-before"), name: $("tag-after") };
    this.compare = new Compare(this.stage, elements, {
      onMode: () => this.resized(),
      onChange: () => this.stage.refresh(),
    });
    this.motion = new Motion($("stage"), {
      locate: (event) => this.stage.locate(event),
      on: {
        leave: () => this.leave(),
        zoom: () => this.moved({ restart: true }),
        pan: () => this.moved({ restart: false }),
        hover: (place) => this.hovered(place),
      },
    });
    this.exporter = new Exporter({
      formats: about.formats,
      current: () => ({ picture: this.picture, model: this.model }),
      say,
    });
    this.#controls();
  }

  #controls() {
    const { about, motion } = this;
    $("limits").textContent = describeLimits(about.limits);
    for (const model of about.models) $("model").append(new Option(model, model));
    $("model").addEventListener("change", () => this.choose($("model").value));
    for (const id of ["open-other", "choose"]) $(id).addEventListener("click", () => $("file").click());
    $("home").addEventListener("click", () => this.home());
    $("zoom-in").addEventListener("click", () => motion.zoomBy(2));
    $("zoom-out").addEventListener("click", () => motion.zoomBy(1 / 2));
    $("zoom-fit").addEventListener("click", () => motion.fit());
    $("save-view").addEventListener("click", () => this.saveView());
    listen({ input: $("file"), veil: $("veil"), onFile: (file) => this.open(file), onNothing: complain });
    $("examples").hidden = about.examples.length === 0;
    showExamples($("examples").querySelector("ul"), about.examples, async (name) => {
      try {
        this.open(await api.fetchExample(name));
      } catch (error) {
        complain(error.message);
      }
    });
  }

  // Opening

  /** Open a file; with a view of it, at the same place. */
  async open(file, view = null) {
    complain("");
    const reason = await refusal(file, this.about.limits);
    if (reason) return complain(reason);
    this.opening?.abort();
    const { signal } = (this.opening = new AbortController());
    document.body.dataset.opening = "true"; // for the pointer's shape
    say(`Opening ${file.name}`);
    try {
      const picture = await api.upload(file, signal);
      const base = await this.#base(picture, signal);
      if (!signal.aborted) this.show(picture, base, file, view);
    } catch (error) {
      if (!signal.aborted) complain(error.message);
    } finally {
      if (this.opening.signal === signal) delete document.body.dataset.opening;
    }
  }

  /** The picture as it is, or reduced if it is very large. */
  #base({ id, width, height }, signal) {
    const shrink = Math.min(1, Math.sqrt(BASE_PIXELS / (width * height)));
    const size = [width, height].map((side) => Math.max(1, Math.floor(side * shrink)));
    return api.fetchTile(id, { source: BICUBIC, level: size.join(), rect: [0, 0, ...size].join() }, signal);
  }

  show(picture, base, file, view) {
    this.close();
    Object.assign(this, { picture, base, file, lifted: new Set(), layers: new Map(), shown: BICUBIC });
    $("welcome").hidden = true;
    for (const id of ON_STAGE) $(id).hidden = false;
    $("stage").dataset.alpha = picture.alpha;
    $("name").textContent = picture.name;
    $("facts").textContent = `${picture.width} × ${picture.height}`;
    document.title = `${picture.name} – srno`;
    this.exporter.forget();
    this.view = view ?? new View(picture, this.stage.pane, this.about.zoom);
    this.motion.attach(this.view);
    this.stage.scene = () => ({ view: this.view, before: this.layer(BICUBIC), after: this.layer(this.shown) });
    $("stage").focus({ preventScroll: true });
    this.compare.place(BICUBIC);
    this.resized();
    this.choose(this.model);
  }

  /** Back to where one chooses a picture. */
  home() {
    this.opening?.abort();
    this.close();
    this.motion.attach(null);
    this.stage.scene = null;
    for (const id of ON_STAGE) $(id).hidden = true;
    $("welcome").hidden = false;
    $("choose").focus();
  }

  close() {
    this.lifting?.abort();
    for (const layer of this.layers?.values() ?? []) layer.halt();
    this.layers = null;
  }

  // Lifting

  /** Look through a model; until it has lifted the picture, what was shown before stays. */
  async choose(model) {
    this.model = model;
    this.lifting?.abort();
    this.lifting = null;
    showLifting(null);
    if (this.lifted.has(model)) return this.look(model);
    this.rest();
    const control = (this.lifting = new AbortController());
    showLifting({ share: 0, waiting: false });
    try {
      await api.lift(this.picture.id, model, showLifting, control.signal);
      this.lifted.add(model);
      if (this.lifting !== control) return;
      showLifting(null);
      say(`${this.picture.name} is lifted by ${model}`);
      this.look(model);
    } catch (error) {
      if (control.signal.aborted) return;
      showLifting(null);
      this.failed(error);
    }
  }

  look(model) {
    if (this.shown !== model) this.layer(model).inherit(this.layer(this.shown), this.view);
    this.shown = model;
    this.compare.place(`srno · ${model}`);
    this.rest();
  }

  layer(source) {
    if (!this.layers.has(source)) {
      const operator = source !== BICUBIC;
      const { picture, base, about } = this;
      this.layers.set(
        source,
        new Layer({
          picture,
          source,
          base,
          longest: operator ? LONGEST.operator : LONGEST.bicubic,
          parallel: operator ? Math.min(4, about.threads + 1) : 1,
          onChange: () => {
            this.stage.refresh();
            this.progress();
          },
          onFail: (error) => this.failed(error, source),
        }),
      );
    }
    return this.layers.get(source);
  }

  get inUse() {
    const sources = new Set(this.stage.mode === "off" ? [this.shown] : [BICUBIC, this.shown]);
    return [...sources].map((source) => this.layer(source));
  }

  /** Memory is limited, so the server may have had to forget: then it is told again. */
  failed(error, source = this.model) {
    if (error.status === 404 && !document.body.dataset.opening) this.open(this.file, this.view);
    else if (error.status === 409 && this.lifted.delete(source)) source === this.model && this.choose(source);
    else if (error.status === 503) this.#restIn(500);
    else complain(error.message);
  }

  // Moving and resting

  leave() {
    if (this.view.snapped) for (const layer of this.inUse) layer.remember(this.view);
    for (const layer of this.layers.values()) layer.halt();
    this.progress();
  }

  moved({ restart }) {
    this.stage.refresh();
    this.readOut();
    this.progress();
    if (restart || !this.timer) this.#restIn(REST);
  }

  #restIn(time) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.rest(), time);
  }

  /** Nothing moves: ask for the window's own pixels. */
  rest() {
    clearTimeout(this.timer);
    this.timer = null;
    if (!this.layers) return;
    if (this.motion.moving) return this.#restIn(REST);
    if (!this.view.snapped) this.view.snap(this.motion.anchor?.x, this.motion.anchor?.y);
    const inUse = this.inUse;
    for (const layer of this.layers.values()) if (!inUse.includes(layer)) layer.halt();
    for (const layer of inUse) layer.want(this.view);
    this.stage.refresh();
    this.readOut();
    this.progress();
  }

  resized() {
    this.compare.place();
    if (!this.layers) return;
    this.view.resize(this.stage.pane);
    this.rest();
  }

  hovered(place) {
    this.hover = place;
    this.compare.moveLens(place);
    this.readOut();
  }

  // Telling

  readOut() {
    const { view } = this;
    const zoom = view.scale;
    const middle = { x: view.pane.width / 2, y: view.pane.height / 2 };
    const place = view.toPicture(this.hover?.x ?? middle.x, this.hover?.y ?? middle.y);
    const digits = zoom < 2 ? 0 : zoom < 16 ? 1 : 2;
    $("zoom").textContent = `×${zoom.toFixed(zoom < 10 ? 2 : zoom < 100 ? 1 : 0)}`;
    $("place").textContent = view.contains(place) ? `x ${place.x.toFixed(digits)}  y ${place.y.toFixed(digits)}` : "";
  }

  progress() {
    if (!this.layers) return;
    const layers = this.inUse;
    const sharp = !this.motion.moving && !this.timer && layers.every((layer) => layer.isSharp(this.view));
    const count = (name) => layers.reduce((sum, layer) => sum + layer[name], 0);
    $("computing").style.transform = `scaleX(${sharp ? 1 : this.timer ? 0 : count("done") / (count("wanted") || 1)})`;
    $("computing").dataset.sharp = sharp;
    const { dataset } = $("stage");
    dataset.sharp = sharp && this.shown === this.model;
    dataset.view = this.view.key();
    this.sharp = sharp;
    if (sharp) for (const resolve of this.waiting.splice(0)) resolve();
    if (!sharp || dataset.said === dataset.view) return;
    dataset.said = dataset.view;
    const [x, y] = Object.values(this.view.toPicture(this.view.pane.width / 2, this.view.pane.height / 2));
    say(`Zoom ${$("zoom").textContent.slice(1)}, centre at ${x.toFixed(0)}, ${y.toFixed(0)}`);
  }

  /** What the window shows, once it is all there. */
  async saveView() {
    if (!this.sharp) await new Promise((resolve) => this.waiting.push(resolve));
    const blob = await this.stage.snapshot();
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    const stem = this.picture.name.replace(/\.\w+$/, "");
    link.download = `${stem}_view_${$("zoom").textContent.slice(1)}x.png`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    say(`Saved ${link.download}`);
  }
}

function showLifting(facts) {
  $("busy").hidden = facts === null;
  if (!facts) return;
  $("lifting").value = facts.share;
  $("busy-text").textContent = facts.waiting ? "Waiting to lift the picture…" : "Lifting the picture…";
}

function say(text) {
  $("live").textContent = text;
}

let fading;
/** A mistake or a misfortune, on the page and for screen readers; an empty text takes the last one away. */
function complain(text) {
  clearTimeout(fading);
  $("toast").textContent = text;
  if (text) fading = setTimeout(() => ($("toast").textContent = ""), 12_000);
}

try {
  new Page(await api.about());
} catch (error) {
  complain(error.message);
}
