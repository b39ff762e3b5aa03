// The address of the page: picture, place, zoom and mode are in it, and Back goes back.

const NEW_ENTRY_ZOOM = 2; // a zoom by this factor is a step in the history

/** The state in the address: `picture` (a kept file) or `example`, place and settings; null on the start page. */
export function readAddress() {
  const fields = new URLSearchParams(location.hash.slice(1));
  const state = Object.fromEntries(fields);
  if (!state.picture && !state.example) return null;
  const [x, y, scale] = ["x", "y", "zoom"].map((name) => Number.parseFloat(state[name]));
  return { ...state, place: [x, y, scale].every(Number.isFinite) ? { x, y, scale } : null };
}

export class Address {
  /** `onBack(state)` is called when the user goes back or forward. */
  constructor(onBack) {
    this.entry = null; // what the current history entry was made for
    addEventListener("popstate", () => {
      this.entry = readAddress();
      onBack(this.entry);
    });
  }

  /** Write the state into the address: a new history entry for another picture, mode or a large change of zoom. */
  write({ picture, example, place, mode, model, against, split }) {
    const fields = new URLSearchParams(picture ? { picture } : { example });
    const digits = Math.max(0, Math.ceil(Math.log10(Math.max(1, place.scale))));
    fields.set("x", place.x.toFixed(digits + 1));
    fields.set("y", place.y.toFixed(digits + 1));
    fields.set("zoom", place.scale.toPrecision(6));
    for (const [name, value] of Object.entries({ mode, model, with: against })) fields.set(name, value);
    if (mode === "divider") fields.set("split", Math.round(split * 100));
    if (location.hash === `#${fields}`) return;
    const state = { picture, example, mode, model, against, place };
    if (this.#isStep(state)) {
      history.pushState(null, "", `#${fields}`);
      this.entry = state;
    } else {
      history.replaceState(null, "", `#${fields}`);
    }
  }

  /** Leave the picture: the start page is an entry of its own. */
  clear() {
    if (location.hash) history.pushState(null, "", location.pathname);
    this.entry = null;
  }

  /** Take the address as it is, after it was applied. */
  settle(state) {
    this.entry = state;
  }

  #isStep(state) {
    if (!this.entry) return true;
    const same = ["picture", "example", "mode"].every((name) => (this.entry[name] ?? "") === (state[name] ?? ""));
    const before = this.entry.place?.scale ?? state.place.scale;
    return !same || Math.abs(Math.log(state.place.scale / before)) >= Math.log(NEW_ENTRY_ZOOM);
  }
}
