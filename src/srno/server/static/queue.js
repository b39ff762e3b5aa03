// Several pictures, one after the other: those that were dropped together, and those opened before.

const ROW = "srno-row"; // of this tab, in its session storage

const $ = (id) => document.getElementById(id);

export class Queue {
  /** `onShow(entry)` is called when another picture is chosen. */
  constructor(onShow) {
    Object.assign(this, { entries: [], index: -1, onShow });
    $("queue-back").addEventListener("click", () => this.step(-1));
    $("queue-next").addEventListener("click", () => this.step(1));
  }

  /** Add files after the current one and return their entries: a file and, later, its key in the address. */
  add(files) {
    const added = files.map((file) => ({ file }));
    this.entries.splice(this.index + 1, 0, ...added);
    return added;
  }

  /** The row as it was before a reload; its files are read when they are shown. */
  restore() {
    try {
      this.entries = JSON.parse(sessionStorage.getItem(ROW)) ?? [];
    } catch {
      // storage is blocked: the row begins anew
    }
  }

  /** Remember the row for a reload, without the files that the browser could not keep. */
  save() {
    const known = this.entries.filter(({ key, example }) => key || example).map(({ key, example }) => ({ key, example }));
    try {
      sessionStorage.setItem(ROW, JSON.stringify(known));
    } catch {
      // storage is blocked
    }
  }

  /** Remove a picture that cannot be opened, and return the one after it. */
  remove(entry) {
    const place = this.entries.indexOf(entry);
    if (place < 0) return null;
    this.entries.splice(place, 1);
    if (place <= this.index) this.index -= 1;
    this.show();
    return this.entries[place] ?? null;
  }

  /** Make an entry the current one. */
  select(entry) {
    if (!this.entries.includes(entry)) this.entries.splice(this.index + 1, 0, entry);
    this.index = this.entries.indexOf(entry);
    this.show();
  }

  /** The entry of a kept file or an example. */
  find({ picture, example }) {
    return this.entries.find((entry) => (picture ? entry.key === picture : example && entry.example === example));
  }

  step(by) {
    const entry = this.entries[this.index + by];
    if (entry) this.onShow(entry);
  }

  show() {
    const { index, entries } = this;
    $("queue").hidden = entries.length < 2 || index < 0;
    $("queue-place").textContent = `${index + 1} / ${entries.length}`;
    $("queue-back").disabled = index <= 0;
    $("queue-next").disabled = index >= entries.length - 1;
    this.save();
  }
}
