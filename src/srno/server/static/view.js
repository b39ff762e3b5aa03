// The view: position and zoom of the window over the picture, in device pixels. No DOM, no network.
//
// `scale` is device pixels per picture pixel, `left` and `top` are the picture's corner in the window.
// At rest all three are snapped so that the picture has a whole number of device pixels and starts on one: then each
// pixel of the screen is exactly one pixel of the picture at that size, its zoom level.

const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

export class View {
  constructor(picture, pane, largest) {
    Object.assign(this, { picture, pane, largest, scale: 1, left: 0, top: 0 });
    this.fit();
  }

  /** A copy that can be moved independently. */
  clone() {
    return Object.assign(Object.create(View.prototype), this);
  }

  get fitScale() {
    return Math.min(this.pane.width / this.picture.width, this.pane.height / this.picture.height, this.largest);
  }

  get smallest() {
    return Math.min(this.fitScale, 1);
  }

  /** Size of the whole picture at this zoom. */
  get level() {
    const width = Math.max(1, Math.round(this.picture.width * this.scale));
    return { width, height: Math.max(1, Math.round((this.picture.height * width) / this.picture.width)) };
  }

  /** Device pixels per picture pixel along x and y; they differ by less than a pixel over the whole picture. */
  get scales() {
    const { width, height } = this.level;
    return this.snapped
      ? { x: width / this.picture.width, y: height / this.picture.height }
      : { x: this.scale, y: this.scale };
  }

  get snapped() {
    return this.scale === this.level.width / this.picture.width;
  }

  fit() {
    this.scale = this.fitScale;
    this.left = this.top = 0;
    this.snap();
  }

  isFit() {
    return Math.abs(this.scale / this.fitScale - 1) < 1 / this.level.width + 1e-9;
  }

  /** Change the zoom; the point at (x, y) of the window stays there. */
  zoomTo(scale, x, y) {
    const next = clamp(scale, this.smallest, this.largest);
    const at = this.toPicture(x, y);
    this.scale = next;
    this.left = x - at.x * next;
    this.top = y - at.y * next;
    this.keepInside();
  }

  /** Show the point (x, y) of the picture in the middle of the window. */
  centreOn({ x, y, scale }) {
    this.scale = clamp(scale, this.smallest, this.largest);
    this.left = this.pane.width / 2 - x * this.scale;
    this.top = this.pane.height / 2 - y * this.scale;
    this.keepInside();
    this.snap();
  }

  /** The point of the picture in the middle of the window, and the zoom. */
  get place() {
    return { ...this.toPicture(this.pane.width / 2, this.pane.height / 2), scale: this.scale };
  }

  panBy(dx, dy) {
    this.left += dx;
    this.top += dy;
    this.keepInside();
  }

  /** Move to the nearest zoom level and whole pixel, around the point at (x, y). */
  snap(x = this.pane.width / 2, y = this.pane.height / 2) {
    const at = this.toPicture(x, y);
    this.scale = this.level.width / this.picture.width;
    const { x: sx, y: sy } = this.scales;
    this.left = x - at.x * sx;
    this.top = y - at.y * sy;
    this.keepInside();
    this.left = Math.round(this.left);
    this.top = Math.round(this.top);
  }

  resize(pane) {
    const fitted = this.isFit();
    // Every size of the window rounds the corner anew: without movements in between, the middle is the one before that.
    const { x, y } = this.resized?.key === this.key() ? this.resized : this.place;
    this.pane = pane;
    if (fitted || this.scale < this.smallest) return this.fit();
    this.left = pane.width / 2 - x * this.scale;
    this.top = pane.height / 2 - y * this.scale;
    this.snap();
    this.resized = { x, y, key: this.key() };
  }

  /** Make the picture fill the window, or centre it. */
  keepInside() {
    const place = (start, size, room) => (size <= room ? (room - size) / 2 : clamp(start, room - size, 0));
    const { x, y } = this.scales;
    this.left = place(this.left, this.picture.width * x, this.pane.width);
    this.top = place(this.top, this.picture.height * y, this.pane.height);
  }

  /** Convert a point of the window to pixels of the picture. */
  toPicture(x, y) {
    const { x: sx, y: sy } = this.scales;
    return { x: (x - this.left) / sx, y: (y - this.top) / sy };
  }

  contains({ x, y }) {
    return x >= 0 && y >= 0 && x < this.picture.width && y < this.picture.height;
  }

  /** The part of the level that is in the window: left, top, right, bottom in its pixels. */
  visible() {
    const { width, height } = this.level;
    const left = Math.round(this.left);
    const top = Math.round(this.top);
    return {
      left: clamp(-left, 0, width),
      top: clamp(-top, 0, height),
      right: clamp(this.pane.width - left, 0, width),
      bottom: clamp(this.pane.height - top, 0, height),
    };
  }

  /** A string that identifies the pixels in the window. */
  key() {
    return [this.level.width, Math.round(this.left), Math.round(this.top), this.pane.width, this.pane.height].join();
  }
}
