// Requests to the server.

const POLL_MS = 400; // between two questions about a job
const MOST_ATTEMPTS = 3; // with a picture that the server drops again and again

export class RequestError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

async function ask(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, options);
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new RequestError("The server does not answer. Is srno serve still running?", 0);
  }
  if (answer.ok) return answer;
  const text = await answer.text();
  let message = text;
  try {
    message = JSON.parse(text).error;
  } catch {
    // the guard replies with plain text
  }
  throw new RequestError(message || `The server answered ${answer.status}.`, answer.status);
}

/** Ask about a picture; if the server has dropped it, upload it again. */
async function askAbout(picture, path, options) {
  for (let attempt = 1; ; attempt++) {
    const { id } = picture;
    try {
      return await ask(`/api/images/${id}/${path}`, options);
    } catch (error) {
      if (error.status !== 404 || attempt === MOST_ATTEMPTS) throw error;
      if (picture.id === id) await picture.renew(); // otherwise another request has done it
    }
  }
}

const asJSON = (fields, signal) => ({
  method: "POST",
  headers: { "content-type": "application/json" },
  body: JSON.stringify(fields),
  signal,
});

export async function about() {
  return (await ask("/api/about")).json();
}

export async function fetchExample(name) {
  const blob = await (await ask(`/api/examples/${encodeURIComponent(name)}`)).blob();
  return new File([blob], name, { type: blob.type });
}

/** Upload a file; while the server has no memory to spare, try again. */
export async function upload(file, signal) {
  for (;;) {
    const body = new FormData();
    body.append("file", file, file.name || "pasted.png");
    try {
      return await (await ask("/api/images", { method: "POST", body, signal })).json();
    } catch (error) {
      if (error.status !== 503 || signal?.aborted) throw error;
      await pause(1000, signal);
    }
  }
}

/** Fetch a tile; `priority` decides which of the waiting requests gets the next of the browser's few connections. */
export async function fetchTile(picture, request, signal, priority = "auto") {
  const answer = await askAbout(picture, `tile?${new URLSearchParams(request)}`, { signal, priority });
  return createImageBitmap(await answer.blob(), { colorSpaceConversion: "none", premultiplyAlpha: "default" });
}

/** Versions of the kernel integral: the newest one that is known, and how many there will be. */
export async function fetchState(picture, model, signal) {
  return (await askAbout(picture, `state?${new URLSearchParams({ model })}`, { signal })).json();
}

/** What a model computes on its way to a window: maps and matrices. */
export async function fetchInside(picture, request, signal) {
  return (await askAbout(picture, `inside?${new URLSearchParams(request)}`, { signal })).json();
}

/** Size, bytes and seconds of an export. */
export async function estimateExport(picture, options, signal) {
  return (await askAbout(picture, "exports/estimate", asJSON(options, signal))).json();
}

/** Make a file of a picture, `kind` exports or clips; the result has its address. Aborting `signal` stops the job. */
export async function makeFile(picture, kind, options, report, signal) {
  const { job } = await (await askAbout(picture, kind, asJSON(options, signal))).json();
  const stop = () => void fetch(`/api/jobs/${job}`, { method: "DELETE", keepalive: true }).catch(() => {});
  signal.addEventListener("abort", stop, { once: true });
  addEventListener("pagehide", stop);
  try {
    for (;;) {
      const state = await (await ask(`/api/jobs/${job}`, { signal })).json();
      if (state.error) throw new RequestError(state.error, 400);
      if (state.done) return state;
      report(state);
      await pause(POLL_MS, signal);
    }
  } finally {
    removeEventListener("pagehide", stop);
    signal.removeEventListener("abort", stop);
  }
}

/** Wait; rejects when `signal` is aborted. */
export function pause(time, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, time);
    signal?.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        reject(signal.reason);
      },
      { once: true },
    );
  });
}
