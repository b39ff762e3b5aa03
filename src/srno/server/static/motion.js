// Input: wheel, drag, pinch, double click, keys. Changes the view and calls the callbacks in `on`.

const EASE_MS = 70; // time constant of the zoom animation
const WHEEL_ZOOM = 1.0018; // factor per unit of wheel movement
const KEY_ZOOM = Math.SQRT2; // factor per key press
const KEY_PAN = 1 / 8; // share of the window per key press
const LENS_LIFT = 90; // CSS pixels from the finger up to the lens, which would be under it otherwise
const TAP = { time: 300, distance: 24 }; // limits within a tap and between the two of a double tap, in ms and CSS pixels

const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");

export class Motion {
  /**
   * `on.leave()` is called before the zoom changes, `on.goal(view)` with the view at the end of an animation,
   * `on.zoom()` and `on.pan()` after each change, `on.hover(point)` with the pointer's position or null. `locate(event)`
   * returns the position of an event in the window, in device pixels. While `hasLens()`, one finger moves the lens.
   */
  constructor(element, { locate, hasLens, on }) {
    Object.assign(this, { element, locate, hasLens, on, view: null, goal: null, anchor: null });
    this.pointers = new Map();
    this.press = this.tap = { time: -Infinity, x: 0, y: 0 };
    this.#listen();
  }

  attach(view) {
    this.view = view;
    this.goal = null;
    this.pointers.clear();
  }

  get moving() {
    return this.goal !== null || this.pointers.size > 1;
  }

  /** Animate to `factor` times the last requested zoom, around a point (the middle unless given). */
  zoomBy(factor, place = this.#middle()) {
    this.#glide((this.goal?.scale ?? this.view.scale) * factor, place);
  }

  fit() {
    const { view } = this;
    // Around the middle, which stays in place while the picture shrinks to fit.
    this.#glide(view.fitScale, this.#middle(), (end) => end.fit());
  }

  panBy(dx, dy) {
    this.view.panBy(dx, dy);
    if (this.goal) this.goal.start = this.view.clone();
    this.on.pan();
  }

  /** Jump to the end of an animation. */
  finish() {
    if (this.goal) this.#arrive();
  }

  #middle() {
    return { x: this.view.pane.width / 2, y: this.view.pane.height / 2 };
  }

  /** Animate to a zoom around a point; `finish(view)` corrects the view at the end. */
  #glide(scale, place, finish = () => {}) {
    const { view } = this;
    const target = Math.min(Math.max(scale, view.smallest), view.largest);
    const idle = this.goal === null;
    this.goal = { scale: target, place, finish, start: view.clone() };
    this.anchor = place;
    if (idle) this.on.leave();
    const end = this.#at(target);
    finish(end);
    end.snap(place.x, place.y);
    this.on.goal(end); // its pixels are requested while the animation runs
    if (reducedMotion.matches) this.#arrive();
    else if (idle) requestAnimationFrame((time) => this.#step(time, time));
  }

  /** The view at a zoom on the way: it depends on the start alone, so the end is known when the animation begins. */
  #at(scale) {
    const { start, place } = this.goal;
    const view = start.clone();
    view.zoomTo(scale, place.x, place.y);
    return view;
  }

  #moveTo({ scale, left, top }) {
    Object.assign(this.view, { scale, left, top });
  }

  #step(time, before) {
    if (!this.goal) return;
    const { view, goal } = this;
    const left = Math.log(goal.scale / view.scale);
    if (Math.abs(left) < 0.002) return this.#arrive();
    this.#moveTo(this.#at(view.scale * Math.exp(left * (1 - Math.exp(-Math.max(8, time - before) / EASE_MS)))));
    this.on.zoom();
    requestAnimationFrame((next) => this.#step(next, time));
  }

  #arrive() {
    const { scale, finish } = this.goal;
    this.#moveTo(this.#at(scale));
    this.goal = null;
    finish(this.view);
    this.on.zoom();
  }

  #listen() {
    const { element } = this;
    const listen = (name, act) => element.addEventListener(name, (event) => this.view && act.call(this, event));
    element.addEventListener("wheel", (event) => this.view && this.#wheel(event), { passive: false });
    listen("pointerdown", this.#down);
    listen("pointermove", this.#move);
    for (const end of ["pointerup", "pointercancel"]) listen(end, this.#up);
    // A finger that is lifted leaves the lens where it is.
    listen("pointerleave", (event) => this.#movesLens(event) || this.on.hover(null));
    listen("dblclick", this.#doubleClick);
    addEventListener("keydown", (event) => this.view && this.#key(event));
  }

  #wheel(event) {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 33 : event.deltaMode === 2 ? 400 : 1;
    const turn = Math.max(-400, Math.min(400, event.deltaY * lines)) * (event.ctrlKey && !event.deltaMode ? 5 : 1);
    this.zoomBy(WHEEL_ZOOM ** -turn, this.locate(event));
  }

  #down(event) {
    if (!this.#isPicture(event.target)) return;
    if (event.pointerType === "mouse" && event.button !== 0) return;
    this.element.setPointerCapture(event.pointerId);
    const place = this.locate(event);
    this.pointers.set(event.pointerId, place);
    this.press = { time: event.timeStamp, touch: event.pointerType === "touch", ...place };
    this.on.hover(this.#lensPlace(event, place));
    if (this.pointers.size === 2) {
      this.goal = null;
      this.on.leave();
    }
  }

  #move(event) {
    const now = this.locate(event);
    const before = this.pointers.get(event.pointerId);
    if (this.pointers.size < 2) this.on.hover(this.#lensPlace(event, now));
    if (!before) return;
    if (this.pointers.size === 2) {
      const [other] = [...this.pointers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
      this.#pinch(other, before, now);
    } else if (this.pointers.size === 1 && !this.#movesLens(event)) {
      this.panBy(now.x - before.x, now.y - before.y);
    }
    this.pointers.set(event.pointerId, now);
  }

  #movesLens(event) {
    return event.pointerType === "touch" && this.hasLens();
  }

  /** Where the lens is for a pointer: above a finger, at a mouse. */
  #lensPlace(event, place) {
    return this.#movesLens(event) ? { x: place.x, y: place.y - LENS_LIFT * devicePixelRatio } : place;
  }

  #pinch(other, before, now) {
    const distance = (place) => Math.max(1, Math.hypot(place.x - other.x, place.y - other.y));
    const middle = { x: (now.x + other.x) / 2, y: (now.y + other.y) / 2 };
    this.view.panBy((now.x - before.x) / 2, (now.y - before.y) / 2);
    this.view.zoomTo((this.view.scale * distance(now)) / distance(before), middle.x, middle.y);
    this.anchor = middle;
    this.on.zoom();
  }

  #up(event) {
    if (!this.pointers.delete(event.pointerId)) return;
    if (this.pointers.size === 1) this.on.zoom(); // the end of a pinch
    if (!this.press.touch || event.type === "pointercancel" || this.pointers.size) return;
    const now = { time: event.timeStamp, ...this.locate(event) };
    const near = (then) =>
      Math.hypot(now.x - then.x, now.y - then.y) < TAP.distance * devicePixelRatio && now.time - then.time < TAP.time;
    if (!near(this.press)) return;
    if (near(this.tap)) this.zoomBy(2, now);
    this.tap = now;
  }

  /** Of a mouse only: some browsers also send one after two taps, which `#up` handles. */
  #doubleClick(event) {
    if (!this.press.touch && this.#isPicture(event.target)) this.zoomBy(event.shiftKey ? 1 / 2 : 2, this.locate(event));
  }

  /** Whether an event's target is the picture and not a button over it. */
  #isPicture(target) {
    return target === this.element || target.tagName === "CANVAS";
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("dialog, select")) return;
    if (event.key.startsWith("Arrow") && event.target !== this.element && event.target !== document.body) return;
    const step = { x: this.view.pane.width * KEY_PAN, y: this.view.pane.height * KEY_PAN };
    const act = {
      ArrowLeft: () => this.panBy(step.x, 0),
      ArrowRight: () => this.panBy(-step.x, 0),
      ArrowUp: () => this.panBy(0, step.y),
      ArrowDown: () => this.panBy(0, -step.y),
      "+": () => this.zoomBy(KEY_ZOOM),
      "=": () => this.zoomBy(KEY_ZOOM),
      "-": () => this.zoomBy(1 / KEY_ZOOM),
      _: () => this.zoomBy(1 / KEY_ZOOM),
      0: () => this.fit(),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }
}
