// Ways in: drop, paste, a file from the disk, an example. What is too large is told before it travels.

const mega = (value) => (value / 1e6).toLocaleString("en", { maximumFractionDigits: 1 });

export const describeLimits = ({ bytes, pixels }) =>
  `PNG, JPEG, WebP, TIFF, AVIF, GIF or BMP, up to ${mega(bytes)} MB and ${mega(pixels)} megapixels. It goes no further than this server.`;

/** Why a file cannot be opened, as far as the browser can tell, or null. */
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

/** The size that the browser finds in a file; null if it does not know the format. */
function sizeOf(file) {
  const url = URL.createObjectURL(file);
  return new Promise((resolve) => {
    const image = new Image();
    image.onload = () => resolve({ width: image.naturalWidth, height: image.naturalHeight });
    image.onerror = () => resolve(null);
    image.src = url;
  }).finally(() => URL.revokeObjectURL(url));
}

/** Call `onFile` with whatever is dropped, pasted or chosen. */
export function listen({ input, veil, onFile, onNothing }) {
  input.addEventListener("change", () => {
    if (input.files[0]) onFile(input.files[0]);
    input.value = "";
  });
  addEventListener("paste", (event) => {
    const file = pictureIn(event.clipboardData);
    if (file) onFile(file);
    else if (!isText(event.target)) onNothing("There is no picture on the clipboard.");
  });
  let depth = 0; // of elements that the pointer has entered while dragging
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
    const file = pictureIn(event.dataTransfer);
    if (file) onFile(file);
    else onNothing("That is no file. Save the picture first, then drop the file.");
  });
}

/** The first file; a picture rather than anything else. */
function pictureIn(data) {
  const files = [...(data?.files ?? [])];
  return files.find((file) => file.type.startsWith("image/")) ?? files[0];
}

const carriesFile = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
const isText = (element) => element.matches?.("input:not([type=file]), textarea, select") ?? false;

/** A row of pictures to click. */
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
