// What the browser keeps: settings in its local storage, opened files in its database, so that a reload finds them.

const SETTINGS = "srno";
const MOST_FILES = 20;
const MOST_BYTES = 1e9;

/** Settings of the last visit; an empty object if there are none. */
export function readSettings() {
  try {
    return JSON.parse(localStorage.getItem(SETTINGS)) ?? {};
  } catch {
    return {}; // storage is blocked, or holds something else
  }
}

export function saveSettings(changed) {
  try {
    localStorage.setItem(SETTINGS, JSON.stringify({ ...readSettings(), ...changed }));
  } catch {
    // storage is blocked or full: the settings last for this visit
  }
}

let opening;
function database() {
  opening ??= new Promise((resolve, reject) => {
    const request = indexedDB.open("srno", 1);
    request.onupgradeneeded = () => request.result.createObjectStore("files", { keyPath: "key" });
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  return opening;
}

/** Run `act(store)` in a transaction and return the result of its request, once the transaction is complete. */
async function transact(mode, act) {
  const transaction = (await database()).transaction("files", mode);
  const request = act(transaction.objectStore("files"));
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve(request.result);
    transaction.onerror = transaction.onabort = () => reject(transaction.error);
  });
}

/** Keep a file and return its key; null if the browser refuses. The oldest files make room. */
export async function keepFile(file) {
  const key = `${Date.now().toString(36)}${Math.random().toString(36).slice(2, 8)}`;
  try {
    const old = await transact("readonly", (store) => store.getAllKeys());
    const sizes = new Map(readSettings().sizes ?? []);
    let bytes = file.size + [...sizes.values()].reduce((sum, size) => sum + size, 0);
    for (const [i, one] of old.sort().entries()) {
      if (old.length - i < MOST_FILES && bytes <= MOST_BYTES) break;
      await transact("readwrite", (store) => store.delete(one));
      bytes -= sizes.get(one) ?? 0;
      sizes.delete(one);
    }
    const copy = new Blob([await file.arrayBuffer()], { type: file.type }); // a File may stay a reference to the disk
    await transact("readwrite", (store) => store.put({ key, file: copy, name: file.name }));
    saveSettings({ sizes: [...sizes.set(key, file.size)] });
    return key;
  } catch {
    return null; // no database, or no room in it: a reload will not find the picture
  }
}

/** A kept file; null if it is gone. */
export async function findFile(key) {
  try {
    const found = await transact("readonly", (store) => store.get(key));
    return found ? new File([found.file], found.name, { type: found.file.type }) : null;
  } catch {
    return null;
  }
}
