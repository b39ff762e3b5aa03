// The tiles of one zoom level, on a grid that fits the window in which the level was first seen.

export class Level {
  constructor(size, visible, longest) {
    const span = (low, high, whole) => {
      const room = Math.max(1, high - low);
      const step = Math.ceil(room / Math.ceil(room / longest));
      return { origin: low, step: Math.max(step, Math.min(whole, longest / 2)) }; // the window may grow later
    };
    this.size = size;
    this.x = span(visible.left, visible.right, size.width);
    this.y = span(visible.top, visible.bottom, size.height);
    this.version = 0; // of the kernel integral; tiles of an older version are replaced
    this.tiles = new Map();
  }

  /** Keys and rectangles of the tiles that touch the visible part, the ones nearest to its centre first. */
  covering(visible) {
    const found = [];
    const range = (axis, low, high) => [
      Math.floor((low - axis.origin) / axis.step),
      Math.ceil((high - axis.origin) / axis.step),
    ];
    const [firstX, lastX] = range(this.x, visible.left, visible.right);
    const [firstY, lastY] = range(this.y, visible.top, visible.bottom);
    for (let j = firstY; j < lastY; j++) {
      for (let i = firstX; i < lastX; i++) found.push(this.#tile(i, j));
    }
    const middle = { x: (visible.left + visible.right) / 2, y: (visible.top + visible.bottom) / 2 };
    const distance = ({ rect: [x, y, w, h] }) => Math.hypot(x + w / 2 - middle.x, y + h / 2 - middle.y);
    return found.sort((a, b) => distance(a) - distance(b));
  }

  isCurrent(key) {
    const tile = this.tiles.get(key);
    return !!tile && tile.version === this.version;
  }

  /** Pixels of the tiles that are there. */
  get pixels() {
    return this.tiles.size * this.x.step * this.y.step;
  }

  #tile(i, j) {
    const cut = (axis, index, size) => {
      const start = axis.origin + index * axis.step;
      const low = Math.max(0, start);
      return [low, Math.min(size, start + axis.step) - low];
    };
    const [x, width] = cut(this.x, i, this.size.width);
    const [y, height] = cut(this.y, j, this.size.height);
    return { key: `${i},${j}`, rect: [x, y, width, height] };
  }
}
