// What the page says about its pixels: names of the sources, labels over the picture, progress.

export const BICUBIC = "bicubic";
export const NEAREST = "nearest";
export const FILTERS = [BICUBIC, NEAREST];

/** The source that is a model with a strength of cleaning, as the server names it. */
export const sourceOf = (model, clean) => (clean > 0 ? `${model}@${clean}` : model);

/** Model and strength of a source; a model whose own name ends like this is not among those that clean. */
export function partsOf(source, cleanable) {
  const at = source.lastIndexOf("@");
  const model = source.slice(0, at);
  return cleanable.includes(model) ? { model, clean: Number(source.slice(at + 1)) } : { model: source, clean: 0 };
}

/** The name of a source. */
export const nameOf = (source) =>
  ({ [BICUBIC]: "bicubic", [NEAREST]: "nearest neighbour" })[source] ?? `srno · ${source.replace(/@([\d.]+)$/, ", clean $1")}`;

/** What the window shows of a source, in words: what is bicubic is called bicubic. */
export function labelOf(layer, view) {
  const name = nameOf(layer.source);
  const { done, all } = layer.count(view);
  if (done === all || layer.source === BICUBIC) return name;
  if (layer.source === NEAREST || layer.hasPixels(view)) return `${name}, ${Math.floor((100 * done) / all)} %`;
  return layer.stopped ? `bicubic, not ${name}` : `bicubic, ${name} is coming`;
}

/** The zoom as text. */
export const zoomText = (scale) => scale.toFixed(scale < 10 ? 2 : scale < 100 ? 1 : 0);

/** Estimates how long the tiles of a window take, from those that have arrived. */
export class Pace {
  restart() {
    this.start = performance.now();
    this.first = null;
  }

  /** Seconds to the end; null before a second tile has arrived. */
  left(done, all) {
    const now = performance.now();
    this.first ??= done > 0 ? { time: now, done } : null;
    if (!this.first || done <= this.first.done) return null;
    return (((now - this.first.time) / (done - this.first.done)) * (all - done)) / 1000;
  }

  get seconds() {
    return (performance.now() - this.start) / 1000;
  }
}
