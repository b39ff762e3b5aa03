// Saves what the window shows; the name of the file says what that is.

import { BICUBIC, zoomText } from "./labels.js";
import { announce, download } from "./messages.js";

const KEEP_MS = 60_000; // for the browser to write the file

/** Save the window as a PNG, once it is sharp or stopped. */
export async function saveView(viewer) {
  await viewer.finished();
  if (!viewer.sources) return;
  const { view, picture, stage } = viewer;
  const blob = await stage.snapshot();
  const { before, after } = viewer.sources.sides(view);
  const shown = stage.peeking ? [before] : stage.mode === "off" ? [after] : [before, after];
  const stem = picture.name.replace(/\.\w+$/, "");
  const names = shown.map((layer) => sourceIn(layer, view)).join("_");
  const link = download(URL.createObjectURL(blob), `${stem}_view_${zoomText(view.scale)}x_${names}.png`);
  setTimeout(() => URL.revokeObjectURL(link.href), KEEP_MS);
  announce(`Saved ${link.download}`);
}

/** What the window has of a source: where its pixels are missing, it is bicubic. */
function sourceIn(layer, view) {
  if (layer.isSharp(view)) return layer.source;
  return layer.hasPixels(view) ? `${layer.source}-partly` : BICUBIC;
}
