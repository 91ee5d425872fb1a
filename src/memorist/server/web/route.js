// Addresses: `#/memories?kind=fact&show=memory:ID` names the view, its filters and what the
// inspector shows. All of it is behind the `#`, so that no question reaches a server's log.

import { useEffect, useState } from "./vendor/preact-htm.js";

const PLACE = ["user", "agent"]; // whose memory: carried along from view to view

export function readRoute(hash = location.hash) {
  const [, path, search] = /^#?\/?([^?]*)\??(.*)$/s.exec(hash);
  const query = Object.fromEntries(new URLSearchParams(search));
  return { view: path || "chat", query };
}

// The address of a view, or of this one with other parameters; null removes a parameter.
export function href({ view, ...changes }) {
  const here = readRoute();
  const kept = view && view !== here.view ? PLACE : Object.keys(here.query);
  const query = Object.fromEntries(kept.map((name) => [name, here.query[name]]));
  const entries = Object.entries({ ...query, ...changes });
  const search = new URLSearchParams(entries.filter(([, value]) => value != null && value !== ""));
  return `#/${view ?? here.view}${search.size ? `?${search}` : ""}`;
}

export function go(changes, { replace = false } = {}) {
  if (replace) {
    history.replaceState(null, "", href(changes));
    dispatchEvent(new HashChangeEvent("hashchange"));
  } else {
    location.hash = href(changes);
  }
}

export function useRoute() {
  const [route, setRoute] = useState(readRoute);
  useEffect(() => {
    const update = () => setRoute(readRoute());
    addEventListener("hashchange", update);
    update(); // it may have changed before anybody listened
    return () => removeEventListener("hashchange", update);
  }, []);
  return route;
}
