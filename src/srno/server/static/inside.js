// The panel that shows what the operator computes on its way to the window: maps, and the matrix M of each layer.

import { fetchInside } from "./api.js";
import { nameOf } from "./labels.js";

const TITLES = {
  features: () => "Features",
  z: (layer) => (layer ? `z after layer ${layer}` : "z before the first layer"),
  k: (layer) => `K of layer ${layer}`,
  v: (layer) => `V of layer ${layer}`,
  m: (layer) => `M of layer ${layer}`,
};
const SENTENCES = {
  features: () => "What the encoder has found around each pixel of the picture.",
  z: (layer) =>
    layer
      ? "Each point has added what M says about the whole picture, seen from its own values."
      : "The lifting: features of the nearest pixels, with the distance to them and the size of an output pixel.",
  k: () => "Columns of K, a basis of functions that the layer makes from z: what it looks for in the picture.",
  v: () => "Columns of V, a second basis: what it takes from where K has found something.",
  m: ({ heads, width, largest }) =>
    `The kernel integral: the mean of every column of K times every column of V over the whole picture, ${heads} heads of ${width} × ${width}; blue is negative, red positive, up to ${largest.toFixed(2)}. It changes with the zoom up to ×4, the largest scale of the training.`,
};

export class Inside {
  /** `element` is where the maps go. */
  constructor(element) {
    Object.assign(this, { element, maps: [], shown: null });
  }

  /** Show the inside of the window of a viewer. */
  async update(viewer, model) {
    const { view, picture, sources } = viewer;
    if (view.scale < 1) return this.#say("Below ×1 nothing is enlarged, and the operator is not evaluated. Zoom in.");
    const { left, top, right, bottom } = view.visible();
    const { width, height } = view.level;
    const { version } = sources.layer(model);
    const request = { source: model, level: `${width},${height}`, rect: [left, top, right - left, bottom - top].join(), version };
    const name = `${picture.id}?${new URLSearchParams(request)}`;
    if (name === this.shown) return;
    this.control?.abort();
    const { signal } = (this.control = new AbortController());
    this.shown = name;
    const seen = view.clone();
    try {
      const found = await fetchInside(picture, request, signal);
      const sheet = await decode(found.sheet);
      const matrices = await Promise.all(found.groups.filter(({ kind }) => kind === "m").map((group) => decode(group.picture)));
      if (signal.aborted) return;
      this.view = seen;
      this.#draw(found, sheet, matrices, model);
    } catch (error) {
      if (signal.aborted) return;
      this.shown = null;
      this.#say(error.message);
    }
  }

  /** Mark the place of the pointer in all maps, and write their values there. */
  point(place) {
    const { view } = this;
    if (!view || !this.maps.length) return;
    const { left, top, right, bottom } = view.visible();
    const x = place ? (place.x - view.left - left) / (right - left) : -1;
    const y = place ? (place.y - view.top - top) / (bottom - top) : -1;
    const inside = x >= 0 && x < 1 && y >= 0 && y < 1;
    this.element.toggleAttribute("data-pointed", inside);
    if (!inside) return;
    this.element.style.setProperty("--x", `${100 * x}%`);
    this.element.style.setProperty("--y", `${100 * y}%`);
    for (const map of this.maps) map.value.textContent = map.at(x, y).toFixed(2);
  }

  /** Forget everything, when the panel is closed. */
  clear() {
    this.control?.abort();
    this.#say("");
  }

  #say(text) {
    this.control?.abort();
    Object.assign(this, { maps: [], shown: null });
    const words = document.createElement("p");
    words.textContent = text;
    this.element.replaceChildren(words);
  }

  #draw(found, sheet, matrices, model) {
    this.maps = [];
    const intro = document.createElement("p");
    intro.textContent = `What ${nameOf(model)} computes for this window, from top to bottom: of each kind the four channels that vary most over the picture, with their values at the pointer.`;
    const pixels = grayOf(sheet);
    let row = 0;
    const sections = found.groups.map((group) => {
      if (group.kind === "m") return section(group, [picture(matrices.shift(), "matrix")]);
      const maps = group.channels.map((channel, i) => this.#map(found, sheet, pixels, { group, channel, row, i }));
      row += 1;
      return section(group, maps);
    });
    const scroll = this.element.scrollTop;
    this.element.replaceChildren(intro, ...sections);
    this.element.scrollTop = scroll;
  }

  /** One map with the number of its channel and its value at the pointer. */
  #map({ width, height }, sheet, pixels, { group, channel, row, i }) {
    const figure = document.createElement("figure");
    const canvas = picture(sheet, "map", { x: i * width, y: row * height, width, height });
    const caption = document.createElement("figcaption");
    const value = document.createElement("output");
    caption.append(`${channel} `, value);
    figure.append(canvas, caption);
    const [low, high] = group.ranges[i];
    const at = (x, y) => {
      const place = (row * height + Math.floor(y * height)) * sheet.width + i * width + Math.floor(x * width);
      return low + (pixels[4 * place] / 255) * (high - low);
    };
    this.maps.push({ value, at });
    return figure;
  }
}

/** A title, one sentence, and the maps of a group. */
function section(group, maps) {
  const element = document.createElement("section");
  element.dataset.kind = group.kind;
  const title = document.createElement("h3");
  title.textContent = TITLES[group.kind](group.layer);
  const words = document.createElement("p");
  words.textContent = SENTENCES[group.kind](group.kind === "z" ? group.layer : group);
  const row = document.createElement("div");
  row.className = "row-of-maps";
  row.append(...maps);
  element.append(title, words, row);
  return element;
}

/** A canvas with a part of an image. */
function picture(image, name, { x, y, width, height } = { x: 0, y: 0, width: image.width, height: image.height }) {
  const frame = document.createElement("div");
  frame.className = name;
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width, height });
  canvas.getContext("2d").drawImage(image, x, y, width, height, 0, 0, width, height);
  frame.append(canvas);
  return frame;
}

/** The samples of a gray image, four numbers for each pixel. */
function grayOf(image) {
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width: image.width, height: image.height });
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(image, 0, 0);
  return context.getImageData(0, 0, image.width, image.height).data;
}

/** A PNG in base64 as an image. */
function decode(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return createImageBitmap(new Blob([bytes], { type: "image/png" }), { colorSpaceConversion: "none" });
}
