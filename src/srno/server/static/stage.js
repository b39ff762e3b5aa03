// The canvas: one or two windows onto the picture, drawn from layers.

const GAP = 2; // device pixels between two windows

/** A length in device pixels: what the browser says, unless it forgets the zoom of an emulated screen. */
function devicePixels(length, exact) {
  const computed = length * devicePixelRatio;
  return Math.max(1, Math.abs(exact - computed) <= 1 ? exact : Math.round(computed));
}

export class Stage {
  constructor(element, canvas, { onResize }) {
    Object.assign(this, { element, canvas, mode: "off", split: 0.5, lens: null, scene: null, scheduled: false });
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
      observer.observe(canvas); // a browser that cannot say it exactly
    }
  }

  /** Device pixels per CSS pixel. */
  get ratio() {
    return this.canvas.width / Math.max(1, this.canvas.clientWidth);
  }

  /** Two windows lie beside each other, or above each other where that leaves them more room. */
  get upright() {
    return this.canvas.height > this.canvas.width;
  }

  /** Size of a window. */
  get pane() {
    const { width, height } = this.canvas;
    if (this.mode !== "side") return { width, height };
    const half = (length) => Math.max(1, Math.floor((length - GAP) / 2));
    return this.upright ? { width, height: half(height) } : { width: half(width), height };
  }

  /** Where the windows begin. */
  get panes() {
    if (this.mode !== "side") return [{ x: 0, y: 0 }];
    const { width, height } = this.canvas;
    const second = this.upright ? { x: 0, y: height - this.pane.height } : { x: width - this.pane.width, y: 0 };
    return [{ x: 0, y: 0 }, second];
  }

  /** Place of an event in its window, in device pixels. */
  locate(event) {
    const box = this.canvas.getBoundingClientRect();
    const x = (event.clientX - box.left) * this.ratio;
    const y = (event.clientY - box.top) * this.ratio;
    const pane = this.panes.findLast((corner) => x >= corner.x && y >= corner.y) ?? { x: 0, y: 0 };
    return { x: x - pane.x, y: y - pane.y };
  }

  /** Draw soon: `scene()` gives the view and the two layers. `data-drawn` says whether that is done. */
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

  /** Draw now; true if something has yet to fade in. */
  draw(context, options) {
    const { view, before, after } = this.scene();
    const { width, height } = this.canvas;
    context.clearRect(0, 0, width, height);
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

  /** What the windows show, as a PNG without the empty margins. */
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

  /** The part of the canvas that has something in it: left, top, width, height. */
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
