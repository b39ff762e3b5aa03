// The server's side of the page.

export class Problem extends Error {
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
    throw new Problem("The server does not answer. Is srno serve still running?", 0);
  }
  if (answer.ok) return answer;
  const text = await answer.text();
  let message = text;
  try {
    message = JSON.parse(text).error;
  } catch {
    // plain text is fine too
  }
  throw new Problem(message || `The server answered ${answer.status}.`, answer.status);
}

export async function about() {
  return (await ask("/api/about")).json();
}

export async function fetchExample(name) {
  const blob = await (await ask(`/api/examples/${encodeURIComponent(name)}`)).blob();
  return new File([blob], name, { type: blob.type });
}

export async function upload(file, signal) {
  const body = new FormData();
  body.append("file", file, file.name || "pasted.png");
  return (await ask("/api/images", { method: "POST", body, signal })).json();
}

export async function fetchTile(id, request, signal) {
  const answer = await ask(`/api/images/${id}/tile?${new URLSearchParams(request)}`, { signal });
  return createImageBitmap(await answer.blob(), { colorSpaceConversion: "none", premultiplyAlpha: "default" });
}

/** Lift a picture; `tell` hears of progress. */
export async function lift(id, model, tell, signal) {
  const answer = await ask(`/api/images/${id}/lift?${new URLSearchParams({ model })}`, { method: "POST", signal });
  return follow(answer, tell);
}

/** Export a picture; the result says where the file is. */
export async function exportPicture(id, order, tell, signal) {
  const headers = { "content-type": "application/json" };
  const options = { method: "POST", headers, body: JSON.stringify(order), signal };
  return follow(await ask(`/api/images/${id}/exports`, options), tell);
}

/** Read lines of JSON as they come; the last is the result. */
async function follow(answer, tell) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new Problem("The server stopped in the middle.", 0);
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      const facts = JSON.parse(line);
      if (facts.error) throw new Problem(facts.error, 400);
      if (facts.done) return facts;
      tell(facts);
    }
  }
}
