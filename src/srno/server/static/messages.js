// Messages: errors stay until they are dismissed, announcements go to screen readers.

const $ = (id) => document.getElementById(id);

/** Show an error until it is dismissed; the same text is shown once. Returns a function that removes it. */
export function showError(text) {
  const list = $("messages");
  for (const item of list.children) if (item.dataset.text === text) return () => item.remove();
  const item = document.createElement("li");
  item.dataset.text = text;
  const words = document.createElement("span");
  words.textContent = text;
  const close = document.createElement("button");
  close.type = "button";
  close.setAttribute("aria-label", "Dismiss this message");
  close.textContent = "×";
  close.addEventListener("click", () => item.remove());
  item.append(words, close);
  list.append(item);
  return () => item.remove();
}

/** Remove all errors, when something new is opened. */
export function clearErrors() {
  $("messages").replaceChildren();
}

export function announce(text) {
  $("live").textContent = text;
}

/** Offer a file for download. */
export function download(address, name) {
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  return link;
}

/** Seconds as text. */
export function duration(seconds) {
  const whole = Math.max(1, Math.round(seconds));
  if (whole < 90) return `${whole} s`;
  return whole < 5400 ? `${Math.round(whole / 60)} min` : `${Math.round(whole / 3600)} h`;
}

/** Bytes as text. */
export function amount(bytes) {
  if (bytes < 1e6) return `${Math.ceil(bytes / 1e3)} kB`;
  return bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(1)} GB`;
}
