// Ways to open a picture: drop, paste, file chooser, examples. Files above the limits are refused before the upload.

const mega = (value) => (value / 1e6).toLocaleString("en", { maximumFractionDigits: 1 });

const NAMES = { WEBP: "WebP", JXL: "JPEG XL", JP2: "JPEG 2000", HEIF: "HEIC" }; // others are called what the server calls them
const SHOWN = ["JPEG", "PNG", "HEIF", "WEBP", "TIFF", "AVIF"]; // the usual ones

/** Which files can be opened, in words. */
export function describeLimits({ limits: { bytes, pixels }, reads: { formats } }) {
  const usual = SHOWN.filter((format) => formats.includes(format)).map((format) => NAMES[format] ?? format);
  const more = formats.length > usual.length ? " and more" : "";
  return `${usual.join(", ")}${more}, up to ${mega(bytes)} MB and ${mega(pixels)} megapixels. It stays on this server and in this browser.`;
}

/** The value of `accept` for a file chooser: not every system knows all of the formats as pictures. */
export const acceptedTypes = ({ reads: { suffixes } }) => ["image/*", ...suffixes].join();

/** Why a file cannot be opened, as far as the browser can check, or null. */
export async function refusal(file, limits) {
  if (file.size === 0) return `${file.name || "The file"} is empty.`;
  if (file.size > limits.bytes) {
    return `${file.name} has ${mega(file.size)} MB; the limit is ${mega(limits.bytes)} MB (--max-megabytes).`;
  }
  const size = await sizeOf(file);
  if (size && size.width * size.height > limits.pixels) {
    const { width, height } = size;
    return `${file.name} has ${width} × ${height} = ${mega(width * height)} megapixels; the limit is ${mega(limits.pixels)} (--max-megapixels).`;
  }
  return null;
}

/** The size of a picture file; null if the browser cannot decode it. */
function sizeOf(file) {
  const url = URL.createObjectURL(file);
  return new Promise((resolve) => {
    const image = new Image();
    image.onload = () => resolve({ width: image.naturalWidth, height: image.naturalHeight });
    image.onerror = () => resolve(null);
    image.src = url;
  }).finally(() => URL.revokeObjectURL(url));
}

/**
 * Call `onFiles` with the files that are dropped, pasted or chosen, `onReject` with a message if there are none. Files
 * with one of these suffixes are pictures, too, whatever the system says.
 */
export function listen({ input, veil, suffixes, onFiles, onReject }) {
  input.addEventListener("change", () => {
    if (input.files.length) onFiles([...input.files]);
    input.value = "";
  });
  addEventListener("paste", (event) => {
    const files = picturesIn(event.clipboardData, suffixes);
    if (files.length) onFiles(files);
    else if (!isText(event.target)) onReject("There is no picture on the clipboard.");
  });
  let depth = 0; // nested elements that the drag has entered
  const show = (by) => {
    depth = Math.max(0, depth + by);
    veil.hidden = depth === 0;
  };
  addEventListener("dragenter", (event) => carriesFile(event) && show(1));
  addEventListener("dragleave", (event) => carriesFile(event) && show(-1));
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", (event) => {
    event.preventDefault();
    show(-depth);
    const files = picturesIn(event.dataTransfer, suffixes);
    if (files.length) onFiles(files);
    else onReject("That is not a file. Save the picture first, then drop the file.");
  });
}

/** The picture files, or the first file if none is a picture. */
function picturesIn(data, suffixes) {
  const files = [...(data?.files ?? [])];
  const isPicture = ({ name, type }) => type.startsWith("image/") || suffixes.some((suffix) => name.toLowerCase().endsWith(suffix));
  const pictures = files.filter(isPicture);
  return pictures.length ? pictures : files.slice(0, 1);
}

const carriesFile = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
const isText = (element) => element.matches?.("input:not([type=file]), textarea, select") ?? false;

/** Add a button with a thumbnail for each example. */
export function showExamples(list, names, onChoose) {
  for (const name of names) {
    const button = document.createElement("button");
    const image = document.createElement("img");
    const title = name.replace(/\.\w+$/, "").replaceAll(/[-_]/g, " ");
    button.type = "button";
    image.src = `/api/examples/${encodeURIComponent(name)}`;
    image.alt = "";
    const text = document.createElement("span");
    text.textContent = title;
    button.append(image, text);
    button.addEventListener("click", () => onChoose(name));
    const item = document.createElement("li");
    item.append(button);
    list.append(item);
  }
}
