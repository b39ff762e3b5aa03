// The picture in the window: follows the movements and keeps what is shown sharp.

import { about, pause } from "./api.js";
import { Compare } from "./compare.js";
import { saveSettings } from "./keep.js";
import { announce, showError } from "./messages.js";
import { Motion } from "./motion.js";
import { Sources } from "./sources.js";
import { Stage } from "./stage.js";
import { Status } from "./status.js";
import { View } from "./view.js";

const REST_DELAY_MS = 80; // without movement, before tiles are requested
const RETRY_MS = { busy: 500, gone: 3000 }; // after an error that may pass

const $ = (id) => document.getElementById(id);

export class Viewer {
  /**
   * `choice` has the `model` and what it is compared with, `against`. `onRest()` is called when the window is at rest
   * or its pixels become better, `onPoint(place)` when the pointer moves.
   */
  constructor({ limits, choice, split, onRest, onPoint }) {
    Object.assign(this, { limits, choice, onRest, onPoint });
    this.sources = null; // of the picture that is shown
    this.pointer = null;
    this.waiting = []; // callbacks for when the window is sharp
    const stage = $("stage");
    this.stage = new Stage(stage, $("canvas"), [...document.querySelectorAll(".chequer")], { onResize: () => this.resized() });
    this.stage.split = split;
    const elements = { modes: $("modes"), divider: $("divider"), lens: $("lens"), before: $("tag-before"), name: $("tag-after") };
    this.compare = new Compare(this.stage, elements, {
      onMode: () => this.#modeChanged(),
      onChange: () => this.stage.refresh(),
      onPeek: () => this.sources && this.#atRest && this.rest(),
      onSplit: (value) => saveSettings({ split: value }),
    });
    this.status = new Status(this.compare);
    this.motion = new Motion(stage, {
      locate: (event) => this.stage.locate(event),
      hasLens: () => this.stage.mode === "lens",
      on: {
        leave: () => this.#leave(),
        goal: (view) => this.#request(view),
        zoom: () => this.#moved({ restart: true }),
        pan: () => this.#moved({ restart: false }),
        hover: (place) => this.#hovered(place),
      },
    });
    document.addEventListener("visibilitychange", () => this.sources && (document.hidden ? this.sources.halt() : this.rest()));
  }

  get mode() {
    return this.stage.mode;
  }

  /** Show a whole picture in the window. `base` is a copy of at most a window's size. */
  show(picture, base) {
    this.close();
    this.picture = picture;
    this.sources = new Sources({
      picture,
      base,
      choice: this.choice,
      threads: this.limits.threads,
      onChange: () => this.#changed(),
      onFail: (error) => this.#failed(error),
    });
    this.stage.measure();
    this.view = new View(picture, this.stage.pane, this.limits.zoom);
    this.motion.attach(this.view);
    this.stage.scene = () => ({ view: this.view, ...this.sources.sides(this.view) });
    this.stage.element.focus({ preventScroll: true });
  }

  /** Start to compute, after the view has its place. */
  start() {
    this.resized();
    this.#follow();
  }

  close() {
    this.sources?.close();
    this.sources = null;
    this.motion.attach(null);
    this.stage.scene = null;
    clearTimeout(this.timer);
    this.timer = null;
  }

  /** Show other sources, after `choice` was changed by `change()`. */
  choose(change) {
    this.#leave();
    change();
    this.rest();
    this.#follow();
  }

  /** Stop computing the pixels of this window; a movement starts again. */
  stop() {
    if (!this.sources || this.sharp) return;
    this.motion.finish(); // its next step would start again
    this.halted = true;
    for (const layer of this.#inUse()) layer.stopped = !layer.isSharp(this.view);
    this.sources.halt();
    this.progress();
    announce("Stopped");
  }

  /** Wait until the window is sharp, or will not be. */
  async finished() {
    if (!this.#isOver()) await new Promise((resolve) => this.waiting.push(resolve));
  }

  resized() {
    this.compare.place();
    if (!this.sources || this.applying) return;
    this.view.resize(this.stage.pane);
    this.rest();
  }

  /** Change mode, divider and place at once; nothing is requested on the way. */
  apply({ mode, split, place }) {
    this.applying = true;
    if (mode) this.compare.setMode(mode);
    if (split >= 0 && split <= 1) this.stage.split = split;
    this.applying = false;
    if (!place) return;
    this.view.resize(this.stage.pane);
    this.view.centreOn(place);
  }

  /** Snap the view and request the tiles of the window, unless something moves. */
  rest() {
    clearTimeout(this.timer);
    this.timer = null;
    if (!this.sources) return;
    if (this.motion.moving) return this.#restIn(REST_DELAY_MS);
    if (!this.view.snapped) this.view.snap(this.motion.anchor?.x, this.motion.anchor?.y);
    this.status.restart();
    this.#request(this.view);
    this.stage.refresh();
    this.status.readOut(this.view, this.pointer);
    this.progress();
    this.onRest();
  }

  progress() {
    if (!this.sources) return;
    const { view, halted } = this;
    this.sharp = this.status.progress(view, this.sources.sides(view), [...this.#inUse()], { atRest: this.#atRest, halted });
    if (this.#isOver()) for (const resolve of this.waiting.splice(0)) resolve();
  }

  get #atRest() {
    return !this.motion.moving && !this.timer;
  }

  #inUse() {
    return this.sources.inUse(this.view, this.stage.showsBoth);
  }

  #isOver() {
    return !this.sources || this.sharp || this.halted || [...this.#inUse()].some((layer) => layer.stopped);
  }

  #changed() {
    this.stage.refresh();
    this.progress();
  }

  #follow() {
    const isIdle = () => !document.hidden && this.#isOver();
    this.sources.follow(isIdle, () => this.#atRest && this.rest());
  }

  #request(view) {
    if (!document.hidden && !this.halted) this.sources.want(view, this.stage.showsBoth);
  }

  #leave() {
    this.halted = false;
    if (this.view.snapped) for (const layer of this.#inUse()) layer.remember(this.view);
    this.sources.halt();
    this.progress();
  }

  #moved({ restart }) {
    this.halted = false;
    this.stage.refresh();
    this.status.readOut(this.view, this.pointer);
    this.progress();
    if (restart || !this.timer) this.#restIn(REST_DELAY_MS);
  }

  #restIn(time) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.rest(), time);
  }

  #modeChanged() {
    saveSettings({ mode: this.mode });
    this.resized();
  }

  #hovered(place) {
    this.pointer = place;
    this.compare.moveLens(place ?? this.stage.lens);
    this.status.readOut(this.view, place);
    this.onPoint(place);
  }

  /** Recover from an error: the server may be busy (503) or away (0). */
  #failed(error) {
    if (error.status === 503) {
      this.#restIn(RETRY_MS.busy);
    } else {
      const dismiss = showError(error.message);
      if (error.status === 0) this.#retry(dismiss);
    }
    this.progress();
  }

  /** Wait until the server answers again. */
  async #retry(dismiss) {
    if (this.retrying) return;
    this.retrying = true;
    await serverAnswers();
    this.retrying = false;
    dismiss();
    if (!this.sources) return;
    this.rest();
    this.#follow();
  }
}

/** Ask from time to time until the server answers, and return what it says about itself. */
export async function serverAnswers() {
  for (;;) {
    await pause(RETRY_MS.gone);
    try {
      return await about();
    } catch {
      // still away
    }
  }
}
