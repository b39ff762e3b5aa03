// The canvas: one or two panes that show the picture, drawn from layers.

const PANE_GAP = 2; // device pixels

/** A length in device pixels: the browser's value, unless it ignores the ratio of an emulated screen. */
function devicePixels(length, exact) {
  const computed = length * devicePixelRatio;
  return Math.max(1, Math.abs(exact - computed) <= 1 ? exact : Math.round(computed));
}

export class Stage {
  /** `checks` are the chequered elements under the panes, for transparent pictures. */
  constructor(element, canvas, checks, { onResize }) {
    Object.assign(this, { element, canvas, checks, scene: null, scheduled: false });
    Object.assign(this, { mode: "off", split: 0.5, lens: null, peeking: false });
    this.context = canvas.getContext("2d");
    const observer = new ResizeObserver(([entry]) => {
      const [exact] = entry.devicePixelContentBoxSize ?? [];
      canvas.width = devicePixels(entry.contentRect.width, exact?.inlineSize);
      canvas.height = devicePixels(entry.contentRect.height, exact?.blockSize);
      onResize();
    });
    try {
      observer.observe(canvas, { box: "device-pixel-content-box" });
    } catch {
      observer.observe(canvas); // not every browser has the exact size
    }
  }

  /** Give the canvas its size now, when the stage has just become visible; the observer comes later. */
  measure() {
    const { canvas } = this;
    const size = [canvas.clientWidth, canvas.clientHeight].map((length) => devicePixels(length, NaN));
    if (Math.abs(canvas.width - size[0]) > 1) canvas.width = size[0];
    if (Math.abs(canvas.height - size[1]) > 1) canvas.height = size[1];
  }

  /** Whether the pixels of both sides are needed. */
  get showsBoth() {
    return this.mode !== "off" || this.peeking;
  }

  /** Device pixels per CSS pixel. */
  get ratio() {
    return this.canvas.width / Math.max(1, this.canvas.clientWidth);
  }

  /** Whether two panes are stacked rather than beside each other, which suits a canvas that is taller than wide. */
  get upright() {
    return this.canvas.height > this.canvas.width;
  }

  /** Size of a pane. */
  get pane() {
    const { width, height } = this.canvas;
    if (this.mode !== "side") return { width, height };
    const half = (length) => Math.max(1, Math.floor((length - PANE_GAP) / 2));
    return this.upright ? { width, height: half(height) } : { width: half(width), height };
  }

  /** Top left corners of the panes. */
  get panes() {
    if (this.mode !== "side") return [{ x: 0, y: 0 }];
    const { width, height } = this.canvas;
    const second = this.upright ? { x: 0, y: height - this.pane.height } : { x: width - this.pane.width, y: 0 };
    return [{ x: 0, y: 0 }, second];
  }

  /** Position of an event in its pane, in device pixels. */
  locate(event) {
    const box = this.canvas.getBoundingClientRect();
    const x = (event.clientX - box.left) * this.ratio;
    const y = (event.clientY - box.top) * this.ratio;
    const pane = this.panes.findLast((corner) => x >= corner.x && y >= corner.y) ?? { x: 0, y: 0 };
    return { x: x - pane.x, y: y - pane.y };
  }

  /** Draw at the next frame: `scene()` returns the view and the two layers. `data-drawn` is true once it is done. */
  refresh() {
    if (this.scheduled || !this.scene) return;
    this.scheduled = true;
    this.element.dataset.drawn = false;
    requestAnimationFrame(() => {
      this.scheduled = false;
      if (!this.scene) return;
      if (this.draw(this.context)) this.refresh();
      else this.element.dataset.drawn = true;
    });
  }

  /** Draw now; return true while a tile fades in. */
  draw(context, options) {
    const { view, before, after: right } = this.scene();
    const after = this.peeking ? before : right;
    const { width, height } = this.canvas;
    context.clearRect(0, 0, width, height);
    if (context === this.context) this.#placeChecks(view);
    if (this.mode === "off") return after.draw(context, view, options);
    const paint = (layer, shape, corner = { x: 0, y: 0 }) => {
      context.save();
      context.beginPath();
      shape();
      context.clip();
      context.translate(corner.x, corner.y);
      const fading = layer.draw(context, view, options);
      context.restore();
      return fading;
    };
    if (this.mode === "side") {
      const { width: w, height: h } = this.pane;
      const [a, b] = this.panes;
      const first = paint(before, () => context.rect(a.x, a.y, w, h), a);
      return paint(after, () => context.rect(b.x, b.y, w, h), b) || first;
    }
    if (this.mode === "divider") {
      const edge = Math.round(this.split * width);
      const first = paint(before, () => context.rect(0, 0, edge, height));
      return paint(after, () => context.rect(edge, 0, width - edge, height)) || first;
    }
    const { x, y } = this.lens ?? { x: width / 2, y: height / 2 };
    const first = before.draw(context, view, options);
    return this.#throughLens(context, paint, after, x, y) || first;
  }

  /** Move the chequered elements under the picture. */
  #placeChecks(view) {
    const { ratio, panes, pane } = this;
    this.checks.forEach((element, i) => {
      element.hidden = !panes[i] || !view.picture.alpha;
      if (element.hidden) return;
      const left = Math.max(0, Math.round(view.left));
      const top = Math.max(0, Math.round(view.top));
      const right = Math.min(pane.width, view.left + view.picture.width * view.scales.x);
      const bottom = Math.min(pane.height, view.top + view.picture.height * view.scales.y);
      element.style.left = `${(panes[i].x + left) / ratio}px`;
      element.style.top = `${(panes[i].y + top) / ratio}px`;
      element.style.width = `${(right - left) / ratio}px`;
      element.style.height = `${(bottom - top) / ratio}px`;
    });
  }

  get lensRadius() {
    return Math.min(150, this.canvas.clientWidth * 0.28) * this.ratio;
  }

  #throughLens(context, paint, after, x, y) {
    const shape = () => context.arc(x, y, this.lensRadius, 0, 2 * Math.PI);
    context.save();
    context.beginPath();
    shape();
    context.clip();
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    context.restore();
    return paint(after, shape);
  }

  /** What the canvas shows, as a PNG without the empty margins. */
  snapshot() {
    const copy = document.createElement("canvas");
    const [x, y, width, height] = this.#shown();
    copy.width = width;
    copy.height = height;
    const context = copy.getContext("2d");
    const whole = document.createElement("canvas");
    whole.width = this.canvas.width;
    whole.height = this.canvas.height;
    this.draw(whole.getContext("2d"), { still: true });
    context.drawImage(whole, -x, -y);
    context.fillStyle = context.strokeStyle = "#fff";
    if (this.mode === "divider") context.fillRect(Math.round(this.split * whole.width) - x - 1, 0, 2, height);
    if (this.mode === "lens") this.#ring(context, x, y);
    return new Promise((resolve) => copy.toBlob(resolve, "image/png"));
  }

  /** The part of the canvas that is covered by the picture: left, top, width, height. */
  #shown() {
    const { width, height } = this.canvas;
    if (this.mode === "side") return [0, 0, width, height];
    const { view } = this.scene();
    const { left, top, right, bottom } = view.visible();
    return [Math.max(0, Math.round(view.left)), Math.max(0, Math.round(view.top)), right - left, bottom - top];
  }

  #ring(context, left, top) {
    const { x, y } = this.lens ?? { x: this.canvas.width / 2, y: this.canvas.height / 2 };
    context.lineWidth = 2;
    context.beginPath();
    context.arc(x - left, y - top, this.lensRadius, 0, 2 * Math.PI);
    context.stroke();
  }
}
