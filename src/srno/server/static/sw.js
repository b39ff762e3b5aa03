// The service worker: keeps the page's own files, so that the page opens without the server and can be installed.

const CACHE = "srno-page";
const FILES = [
  "/",
  "/static/address.js",
  "/static/api.js",
  "/static/clip.js",
  "/static/compare.js",
  "/static/export.js",
  "/static/icon.svg",
  "/static/inside.js",
  "/static/keep.js",
  "/static/keys.js",
  "/static/labels.js",
  "/static/level.js",
  "/static/main.js",
  "/static/manifest.webmanifest",
  "/static/messages.js",
  "/static/motion.js",
  "/static/open.js",
  "/static/queue.js",
  "/static/save.js",
  "/static/sources.js",
  "/static/stage.js",
  "/static/status.js",
  "/static/style.css",
  "/static/tiles.js",
  "/static/view.js",
  "/static/viewer.js",
];
const OWN = /^\/(static\/.*)?$/;

self.addEventListener("install", (event) => {
  self.skipWaiting();
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(FILES)));
});

self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

/** Files come from the server while it answers, and are kept; without it the kept ones are used. */
self.addEventListener("fetch", (event) => {
  const { pathname, origin } = new URL(event.request.url);
  if (event.request.method !== "GET" || origin !== location.origin || !OWN.test(pathname)) return;
  event.respondWith(fromServer(event.request, pathname));
});

async function fromServer(request, pathname) {
  const cache = await caches.open(CACHE);
  try {
    const answer = await fetch(request);
    if (answer.ok && !answer.redirected) await cache.put(pathname, answer.clone());
    return answer;
  } catch (error) {
    const kept = await cache.match(pathname);
    if (kept) return kept;
    throw error;
  }
}
