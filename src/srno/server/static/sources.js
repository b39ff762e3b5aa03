// The sources of pixels of one picture: a layer for each model and filter that is in use.

import { fetchState, pause } from "./api.js";
import { BICUBIC, FILTERS } from "./labels.js";
import { Layer } from "./tiles.js";

const STATE_MS = 150; // between two questions about the kernel integral
const LONGEST_TILE_SIDE = { operator: 192, filter: 512 }; // device pixels
const MOST_PARALLEL = 4; // requests of a model at once; a browser has six connections for all tabs

export class Sources {
  /** `choice` has the `model` and what it is compared with, `against`; both may change. */
  constructor({ picture, base, choice, threads, onChange, onFail }) {
    Object.assign(this, { picture, base, choice, threads, onChange, onFail, layers: new Map() });
  }

  /** The layer of a source. */
  layer(source) {
    if (!this.layers.has(source)) {
      const operator = !FILTERS.includes(source);
      const layer = new Layer({
        picture: this.picture,
        source,
        base: this.base,
        under: operator ? this.layer(BICUBIC) : null,
        longest: operator ? LONGEST_TILE_SIDE.operator : LONGEST_TILE_SIDE.filter,
        parallel: operator ? Math.min(MOST_PARALLEL, this.threads + 1) : 1,
        onChange: this.onChange,
        onFail: this.onFail,
      });
      layer.version = operator ? 1 : 0;
      this.layers.set(source, layer);
    }
    return this.layers.get(source);
  }

  /** The layers of both sides; below ×1 nothing is enlarged, and both are bicubic. */
  sides(view) {
    const { model, against } = this.choice;
    const [before, after] = view.scale < 1 ? [BICUBIC, BICUBIC] : [against, model];
    return { before: this.layer(before), after: this.layer(after) };
  }

  /** The layers that a window needs if it shows `both` sides, or one. */
  inUse(view, both) {
    const { before, after } = this.sides(view);
    return new Set(both ? [before, after] : [after]);
  }

  /** Request the tiles of a view, the bicubic ones first: they are there at once. */
  want(view, both) {
    const wanted = this.inUse(view, both);
    const missing = [...wanted].filter((layer) => layer.under && !layer.isSharp(view));
    if (missing.length) wanted.add(this.layer(BICUBIC));
    for (const layer of this.layers.values()) if (!wanted.has(layer)) layer.halt();
    for (const layer of [...wanted].sort((a, b) => !!a.under - !!b.under)) layer.want(view);
  }

  /** Cancel all requests. */
  halt() {
    for (const layer of this.layers.values()) layer.halt();
  }

  close() {
    this.following?.abort();
    this.halt();
  }

  /**
   * Ask how far the kernel integrals of the models have settled, while `isIdle()`: the question makes the server work on
   * them. Call `onBetter()` when one has become better.
   */
  async follow(isIdle, onBetter) {
    this.following?.abort();
    const { signal } = (this.following = new AbortController());
    const { model, against } = this.choice;
    const models = new Set([model, against].filter((source) => !FILTERS.includes(source)));
    try {
      while (models.size) {
        for (const one of isIdle() ? models : []) {
          const { version, versions } = await fetchState(this.picture, one, signal);
          const layer = this.layer(one);
          if (version === versions) models.delete(one);
          if (version <= layer.version) continue;
          layer.version = version;
          onBetter();
        }
        if (models.size) await pause(STATE_MS, signal);
      }
    } catch (error) {
      if (!signal.aborted) this.onFail(error);
    }
  }
}
