// What the page says about the window: zoom and position, labels of both sides, progress, announcements.

import { Pace, labelOf, zoomText } from "./labels.js";
import { announce, duration } from "./messages.js";

const SLOW_SECONDS = 1.5; // from which on the progress is written out

const $ = (id) => document.getElementById(id);

export class Status {
  constructor(compare) {
    Object.assign(this, { compare, pace: new Pace() });
  }

  /** A new window is computed. */
  restart() {
    this.pace.restart();
  }

  /** Write the zoom and the position of `pointer`, or of the middle of the window. */
  readOut(view, pointer) {
    const { scale, pane } = view;
    const place = view.toPicture(pointer?.x ?? pane.width / 2, pointer?.y ?? pane.height / 2);
    const digits = scale < 2 ? 0 : scale < 16 ? 1 : 2;
    $("zoom").textContent = `×${zoomText(scale)}`;
    $("place").textContent = view.contains(place) ? `x ${place.x.toFixed(digits)}  y ${place.y.toFixed(digits)}` : "";
  }

  /** Show how far the window is. `layers` are those in use; returns whether all their pixels are there. */
  progress(view, { before, after }, layers, { atRest, halted }) {
    const counts = layers.map((layer) => layer.count(view));
    const done = counts.reduce((sum, count) => sum + count.done, 0);
    const all = counts.reduce((sum, count) => sum + count.all, 0);
    const sharp = atRest && done === all;
    this.compare.place({ before: labelOf(before, view), after: labelOf(after, view) });
    this.#showShare(sharp || halted, atRest ? done : 0, all);
    const { dataset } = $("stage");
    dataset.sharp = sharp;
    dataset.settled = sharp && counts.every((count) => count.current);
    dataset.view = view.key();
    if (sharp && dataset.announced !== dataset.view) {
      dataset.announced = dataset.view;
      const { x, y } = view.place;
      announce(`Zoom ${zoomText(view.scale)}, centre at ${x.toFixed(0)}, ${y.toFixed(0)}, ${labelOf(after, view)}`);
    }
    return sharp;
  }

  #showShare(over, done, all) {
    $("computing").style.transform = `scaleX(${over ? 1 : done / all})`;
    $("computing").dataset.sharp = over;
    const slow = !over && this.pace.seconds > SLOW_SECONDS;
    $("busy").hidden = !slow;
    if (!slow) return;
    const left = this.pace.left(done, all);
    $("busy-share").value = done / all;
    $("busy-text").textContent = `${Math.floor((100 * done) / all)} %${left === null ? "" : `, about ${duration(left)}`}`;
  }
}
