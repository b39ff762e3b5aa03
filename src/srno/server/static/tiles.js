// One source of pixels, a model or a filter: its tiles at each zoom level, and what to draw until they arrive.

import { fetchTile } from "./api.js";
import { Level } from "./level.js";

const CACHED_TILE_PIXELS = 48e6; // per source
const CACHED_VIEWS = 8;
const SMALL_PICTURE_PIXELS = 2 ** 20; // the server computes tiles of such pictures first
const COARSE = { factor: 4, zoom: 8, tiles: 6 }; // a window is first computed coarsely from this zoom and size on

export class Layer {
  /**
   * `under` is the layer that is drawn where this one has no pixels yet. `onChange` is called when there is something
   * new to draw, `onFail` with an error that is not a cancellation.
   */
  constructor({ picture, source, base, under = null, longest, parallel, onChange, onFail }) {
    Object.assign(this, { picture, source, base, under, longest, parallel, onChange, onFail });
    this.levels = new Map(); // by width, the least recently used first
    this.views = []; // snapshots of earlier windows, to be stretched
    this.queue = [];
    this.running = new Map();
    this.version = 0; // the newest version of the kernel integral; 0 for a source without one
    this.stopped = false;
    // A browser has six connections for all tabs: what takes long leaves them to the rest.
    this.priority = under && picture.width * picture.height > SMALL_PICTURE_PIXELS ? "low" : "auto";
  }

  /** Request the missing tiles of the window; cancel all other requests. */
  want(view) {
    const level = this.#level(view);
    this.stopped = false;
    // A level changes its version only here, at rest, and there are few versions: nothing flickers.
    level.version = this.version;
    const tiles = level.covering(view.visible());
    level.window = hull(tiles).join();
    // Tiles that replace others come last.
    const missing = tiles.filter(({ key }) => !level.isCurrent(key)).sort((a, b) => level.tiles.has(a.key) - level.tiles.has(b.key));
    const urls = new Set(missing.map((tile) => this.#name(level, tile)));
    for (const name of this.running.keys()) if (!urls.has(name)) this.#cancel(name);
    this.queue = missing.filter((tile) => !this.running.has(this.#name(level, tile))).map((tile) => ({ level, tile }));
    if (this.under && missing.length >= COARSE.tiles && view.scale >= COARSE.zoom) this.#coarse(view);
    else this.early?.control.abort();
    this.#next();
    this.#evict();
  }

  /** Request the window at a fraction of its zoom, unless a snapshot of it is as good: it takes a fraction of the time. */
  async #coarse(view) {
    const good = ({ rect, x }) => x * COARSE.factor >= view.scales.x * 0.99 && covers(rect, view);
    if (this.#usefulViews(view).some(good)) return;
    const { picture, source, version } = this;
    const width = Math.round(view.level.width / COARSE.factor);
    const height = Math.max(1, Math.round((picture.height * width) / picture.width));
    const { left, top, right, bottom } = view.visible();
    const [x, y] = [left, top].map((side) => Math.floor(side / COARSE.factor));
    const end = [Math.min(width, Math.ceil(right / COARSE.factor)), Math.min(height, Math.ceil(bottom / COARSE.factor))];
    const request = { source, level: `${width},${height}`, rect: [x, y, end[0] - x, end[1] - y].join(), version };
    const name = Object.values(request).join();
    if (this.early?.name === name) return;
    this.early?.control.abort();
    const early = (this.early = { name, control: new AbortController() });
    try {
      const canvas = await fetchTile(picture, request, early.control.signal, this.priority);
      this.#addView({ canvas, left: -x, top: -y, x: width / picture.width, y: height / picture.height });
      this.onChange();
    } catch {
      // the tiles of the window follow, and report what is wrong
    } finally {
      if (this.early === early) this.early = null;
    }
  }

  /** Cancel all requests. */
  halt() {
    this.early?.control.abort();
    this.early = null;
    this.queue = [];
    for (const name of this.running.keys()) this.#cancel(name);
  }

  /** Remove the request at once, so that the same tile can be requested again before the abort has finished. */
  #cancel(name) {
    this.running.get(name).abort();
    this.running.delete(name);
  }

  /** Tiles of the window that are there, and how many it has. */
  count(view) {
    const level = view.snapped && this.levels.get(view.level.width);
    if (!level) return { done: 0, all: 1, current: false };
    const tiles = level.covering(view.visible());
    const done = tiles.filter(({ key }) => level.tiles.has(key)).length;
    const current = level.version === this.version && tiles.every(({ key }) => level.isCurrent(key));
    return { done, all: tiles.length, current };
  }

  isSharp(view) {
    const { done, all } = this.count(view);
    return done === all;
  }

  /** Whether the middle of the window shows pixels of this source, perhaps stretched. */
  hasPixels(view) {
    if (this.count(view).done) return true;
    const { width, height } = view.pane;
    return this.#usefulViews(view).some(
      ({ rect: [x, y, w, h] }) => x <= width / 2 && y <= height / 2 && x + w >= width / 2 && y + h >= height / 2,
    );
  }

  /** Keep a snapshot of the window, to be stretched after the zoom changes. */
  remember(view) {
    if (!this.levels.get(view.level.width)?.tiles.size) return;
    const canvas = document.createElement("canvas");
    canvas.width = view.pane.width;
    canvas.height = view.pane.height;
    this.draw(canvas.getContext("2d"), view, { still: true });
    const { x, y } = view.scales;
    this.#addView({ canvas, left: Math.round(view.left), top: Math.round(view.top), x, y });
  }

  #addView(seen) {
    this.views = [...this.views.filter((old) => old.x !== seen.x), seen].slice(-CACHED_VIEWS);
    this.views.sort((a, b) => a.x - b.x);
  }

  /** Draw the window; return true while a tile fades in. */
  draw(context, view, { still = false } = {}) {
    context.imageSmoothingEnabled = this.source !== "nearest";
    context.imageSmoothingQuality = view.snapped ? "high" : "low";
    context.save();
    context.beginPath();
    context.rect(...corner(view), this.picture.width * view.scales.x, this.picture.height * view.scales.y);
    context.clip(); // stretched images have soft edges
    if (this.under) this.under.draw(context, view, { still: true });
    else this.#drawBase(context, view);
    for (const seen of this.#usefulViews(view)) this.#drawSeen(context, seen);
    context.restore();
    return this.#drawTiles(context, view, still);
  }

  #drawBase(context, view) {
    const { x, y } = view.scales;
    const [left, top] = corner(view);
    const shrink = { x: this.base.width / this.picture.width, y: this.base.height / this.picture.height };
    // Only the part in the window, with a margin: this keeps the coordinates small at any zoom.
    const a = view.toPicture(0, 0);
    const b = view.toPicture(view.pane.width, view.pane.height);
    const low = (value) => Math.max(0, Math.floor(value) - 2);
    const high = (value, size) => Math.min(size, Math.ceil(value) + 2);
    const sx = low(a.x * shrink.x);
    const sy = low(a.y * shrink.y);
    const sw = high(b.x * shrink.x, this.base.width) - sx;
    const sh = high(b.y * shrink.y, this.base.height) - sy;
    if (sw < 1 || sh < 1) return;
    const unit = { x: x / shrink.x, y: y / shrink.y };
    context.drawImage(this.base, sx, sy, sw, sh, left + sx * unit.x, top + sy * unit.y, sw * unit.x, sh * unit.y);
  }

  /** The snapshots from the last one that covers the whole window upwards; those below it are hidden. */
  #usefulViews(view) {
    const placed = this.views.map((seen) => ({ ...seen, rect: placeOf(seen, view) }));
    const { width, height } = view.pane;
    const near = placed.filter(({ rect: [x, y, w, h] }) => x < width && y < height && x + w > 0 && y + h > 0 && w > 8);
    const first = near.findLastIndex(({ rect }) => covers(rect, view));
    return near.slice(Math.max(0, first));
  }

  #drawSeen(context, { canvas, rect }) {
    if (this.picture.alpha) context.clearRect(...rect);
    context.drawImage(canvas, ...rect);
  }

  #drawTiles(context, view, still) {
    const level = view.snapped && this.levels.get(view.level.width);
    if (!level) return false;
    const [left, top] = corner(view);
    const now = performance.now();
    let fading = false;
    for (const { key, rect } of level.covering(view.visible())) {
      const tile = level.tiles.get(key);
      if (!tile) continue;
      const age = still || this.picture.alpha ? 1 : (now - tile.arrived) / FADE_MS;
      fading ||= age < 1;
      if (this.picture.alpha) context.clearRect(left + rect[0], top + rect[1], rect[2], rect[3]);
      context.globalAlpha = Math.min(1, Math.max(0.05, age));
      context.drawImage(tile.bitmap, left + rect[0], top + rect[1]);
    }
    context.globalAlpha = 1;
    return fading;
  }

  #level(view) {
    const size = view.level;
    const level = this.levels.get(size.width) ?? new Level(size, view.visible(), this.longest);
    this.levels.delete(size.width);
    this.levels.set(size.width, level);
    return level;
  }

  #name(level, { rect }) {
    return `${level.size.width},${level.size.height}:${rect}:${level.version}`;
  }

  #next() {
    while (this.running.size < this.parallel && this.queue.length) this.#load(this.queue.shift());
  }

  async #load({ level, tile }) {
    const name = this.#name(level, tile);
    const control = new AbortController();
    this.running.set(name, control);
    try {
      const { width, height } = level.size;
      const { version } = level;
      const request = { source: this.source, level: `${width},${height}`, rect: tile.rect.join() };
      if (version) Object.assign(request, { version, window: level.window });
      const replaces = level.tiles.has(tile.key); // the server and the browser's connections do other things first
      if (replaces) request.replaces = 1;
      const bitmap = await fetchTile(this.picture, request, control.signal, replaces ? "low" : this.priority);
      const old = level.tiles.get(tile.key);
      level.tiles.set(tile.key, { bitmap, version, arrived: old?.arrived ?? performance.now() });
      old?.bitmap.close();
      this.stopped = false;
      this.onChange();
    } catch (error) {
      if (!control.signal.aborted) {
        this.queue = [];
        this.stopped = true;
        this.onFail(error);
      }
    } finally {
      if (this.running.get(name) === control) this.running.delete(name);
      this.#next();
    }
  }

  #evict() {
    const pixels = () => [...this.levels.values()].reduce((sum, level) => sum + level.pixels, 0);
    for (const [width, level] of this.levels) {
      if (this.levels.size === 1 || pixels() <= CACHED_TILE_PIXELS) return;
      for (const { bitmap } of level.tiles.values()) bitmap.close();
      this.levels.delete(width);
    }
  }
}

const FADE_MS = matchMedia("(prefers-reduced-motion: reduce)").matches ? 1 : 140;

/** The picture's corner, on whole pixels if the view is snapped. */
function corner(view) {
  return view.snapped ? [Math.round(view.left), Math.round(view.top)] : [view.left, view.top];
}

/** Whether a rectangle covers the part of the picture that is in the window. */
function covers([x, y, w, h], view) {
  const [left, top] = corner(view);
  const { width, height } = view.pane;
  const right = Math.min(width, left + view.picture.width * view.scales.x);
  const bottom = Math.min(height, top + view.picture.height * view.scales.y);
  return x <= Math.max(0, left) + 1 && y <= Math.max(0, top) + 1 && x + w >= right - 1 && y + h >= bottom - 1;
}

/** The rectangle of an earlier snapshot in this view. */
function placeOf(seen, view) {
  const { x, y } = view.scales;
  const [left, top] = corner(view);
  const factor = { x: x / seen.x, y: y / seen.y };
  const { width, height } = seen.canvas;
  return [left - seen.left * factor.x, top - seen.top * factor.y, width * factor.x, height * factor.y];
}

/** The rectangle around tiles: what they share on the server is computed for all of them at once. */
function hull(tiles) {
  const side = (pick, edge) => pick(...tiles.map(({ rect }) => edge(rect)));
  const [left, top] = [side(Math.min, ([x]) => x), side(Math.min, ([, y]) => y)];
  return [left, top, side(Math.max, ([x, , w]) => x + w) - left, side(Math.max, ([, y, , h]) => y + h) - top];
}
