// The HTTP API. The key, where the server asks for one, stays in this tab's session storage.

import { readRoute } from "./route.js";

const KEY = "memorist-key";

export class ApiError extends Error {
  constructor(status, problem) {
    super(problem.detail || problem.title || `the server answered with status ${status}`);
    this.status = status;
    this.problem = problem;
  }
}

// What the browser keeps; where it may keep nothing, what this page knows while it is open.
export function storage(name) {
  try {
    return globalThis[name];
  } catch {
    const kept = new Map();
    return {
      getItem: (key) => kept.get(key) ?? null,
      setItem: (key, value) => kept.set(key, value),
      removeItem: (key) => kept.delete(key),
    };
  }
}

const tab = storage("sessionStorage");
export const setKey = (key) => tab.setItem(KEY, key);
export const forgetKey = () => tab.removeItem(KEY);

function headers(extra = {}) {
  const key = tab.getItem(KEY);
  return key ? { ...extra, Authorization: `Bearer ${key}` } : extra;
}

function address(path, query) {
  const entries = Object.entries(query).filter(([, value]) => value != null && value !== "");
  return entries.length ? `${path}?${new URLSearchParams(entries)}` : path;
}

const away = () => new ApiError(0, { detail: "The server does not answer. Is it running?" });

async function request(method, path, { query = {}, body, signal, accept, after } = {}) {
  const response = await fetch(address(path, query), {
    method,
    signal,
    headers: headers({
      ...(body === undefined ? {} : { "Content-Type": "application/json" }),
      ...(accept ? { Accept: accept } : {}),
      ...(after ? { "Last-Event-ID": after } : {}),
    }),
    body: body === undefined ? undefined : JSON.stringify(body),
  }).catch((error) => {
    throw error.name === "AbortError" ? error : away();
  });
  if (!response.ok) {
    const problem = await response.json().catch(() => ({}));
    if (response.status === 401) dispatchEvent(new Event("memorist-key-wanted"));
    throw new ApiError(response.status, problem);
  }
  return response;
}

// Whose memory a request is about, where the address names it (an admin's key has no user).
const place = () => {
  const { user } = readRoute().query;
  return user ? { user } : {};
};

async function json(...args) {
  const response = await request(...args);
  return response.status === 204 ? null : response.json();
}

export const api = {
  get: (path, query = {}, options = {}) =>
    json("GET", `/api/${path}`, { query: { ...place(), ...query }, ...options }),
  post: (path, body = {}, options = {}) =>
    json("POST", `/api/${path}`, { body: { ...place(), ...body }, ...options }),
  put: (path, body = {}) => json("PUT", `/api/${path}`, { body: { ...place(), ...body } }),
  patch: (path, body = {}) => json("PATCH", `/api/${path}`, { body: { ...place(), ...body } }),
  delete: (path, query = {}) => json("DELETE", `/api/${path}`, { query: { ...place(), ...query } }),
  text: async (path, options = {}) => (await request("GET", path, options)).text(),
  // Server-sent events of a request, one at a time: `for await (const {event, data, id} of …)`.
  stream: (method, path, options = {}) => events(method, `/api/${path}`, options),
  // The same of a request whose body is a file; `progress` also tells how much of it is sent.
  upload: (path, file, { query, signal } = {}) =>
    iterate(uploaded(address(`/api/${path}`, { ...place(), ...query }), file, signal)),
  // A file, saved as the server names it; `tell` is called with the bytes that came.
  download: (path, { query, tell, signal } = {}) =>
    downloaded(`/api/${path}`, { query: { ...place(), ...query }, signal }, tell),
};

async function* events(method, path, { body, query, signal, after } = {}) {
  const wanted = { accept: "text/event-stream", signal, after };
  const sent =
    body === undefined ? { query: { ...place(), ...query } } : { body: { ...place(), ...body } };
  const response = await request(method, path, { ...sent, ...wanted });
  let rest = "";
  const text = response.body.pipeThrough(new TextDecoderStream());
  for await (const piece of iterate(text)) {
    const blocks = (rest + piece).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const event = parse(block);
      if (event) yield event;
    }
  }
}

// Not `fetch`, which does not say how much is sent.
function uploaded(url, file, signal) {
  const sent = new XMLHttpRequest();
  let read = 0;
  const start = (stream) => {
    const take = () => {
      const end = sent.responseText.lastIndexOf("\n\n");
      if (sent.status !== 200 || end < read) return;
      const blocks = sent.responseText.slice(read, end).split("\n\n").map(parse);
      for (const event of blocks) if (event) stream.enqueue(event);
      read = end + 2;
    };
    sent.open("POST", url);
    const named = { Accept: "text/event-stream", "Content-Type": "application/octet-stream" };
    for (const [name, value] of Object.entries(headers(named))) sent.setRequestHeader(name, value);
    sent.upload.onprogress = ({ loaded, total }) =>
      stream.enqueue({ event: "progress", data: { doing: "sending", done: loaded, total } });
    sent.onprogress = take;
    sent.onload = () => {
      take();
      if (sent.status === 200) stream.close();
      else stream.error(new ApiError(sent.status, problemOf(sent.responseText)));
    };
    sent.onerror = () => stream.error(away());
    sent.onabort = () => stream.error(new DOMException("Stopped", "AbortError"));
    signal?.addEventListener("abort", () => sent.abort());
    sent.send(file);
  };
  const cancel = () => {
    sent.onload = sent.onprogress = sent.upload.onprogress = null;
    sent.abort();
  };
  return new ReadableStream({ start, cancel });
}

function problemOf(text) {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

async function downloaded(path, options, tell) {
  const response = await request("GET", path, options);
  const [, name] = /filename="([^"]+)"/.exec(response.headers.get("Content-Disposition")) ?? [];
  const pieces = [];
  let bytes = 0;
  for await (const piece of iterate(response.body)) {
    pieces.push(piece);
    tell((bytes += piece.length));
  }
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(pieces, { type: "application/gzip" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  return { name, bytes };
}

// Not every browser can iterate over a stream.
async function* iterate(stream) {
  const reader = stream.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

function parse(block) {
  const fields = {};
  for (const line of block.split("\n")) {
    const [, name, value] = /^(\w+): ?(.*)$/.exec(line) ?? [];
    if (name) fields[name] = name === "data" && fields.data ? `${fields.data}\n${value}` : value;
  }
  if (fields.data !== undefined) fields.data = JSON.parse(fields.data);
  return fields.id || fields.event ? fields : null;
}

// Changes as they happen, shared by all who listen; one stream, opened again where it ended. A
// hidden tab has none: a browser allows six connections to a server.
const listeners = new Set();
let following = null;

export function onChange(listener) {
  listeners.add(listener);
  following ??= follow();
  return () => {
    listeners.delete(listener);
    if (!listeners.size) {
      following.abort();
      following = null;
    }
  };
}

const shown = () =>
  new Promise((resolve) => {
    if (!document.hidden) resolve();
    else document.addEventListener("visibilitychange", () => resolve(), { once: true });
  });

function follow() {
  const stop = new AbortController();
  (async () => {
    let last;
    for (let wait = 1_000; !stop.signal.aborted; wait = Math.min(wait * 2, 30_000)) {
      await shown();
      const pause = new AbortController();
      const hide = () => document.hidden && pause.abort();
      document.addEventListener("visibilitychange", hide);
      const signal = AbortSignal.any([stop.signal, pause.signal]);
      try {
        for await (const event of api.stream("GET", "events", { signal, after: last })) {
          wait = 1_000;
          last = event.id ?? last;
          if (event.data) for (const listener of listeners) listener(event);
        }
        wait = 100; // it ends every minute
      } catch (error) {
        if (stop.signal.aborted || error.status === 401 || error.status === 404) return;
      } finally {
        document.removeEventListener("visibilitychange", hide);
      }
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  })();
  return stop;
}
