// A conversation: which one this browser goes on with, its messages, and the turn that is answered.

import { ApiError, api, storage } from "./api.js";
import { go } from "./route.js";
import { useChanges, usePages, useRef, useState } from "./ui.js";

const kept = storage("localStorage");
const storageKey = (user, agent) => `chatSession_${user}_${agent}`;

// The conversation with an agent: the one that the address names or that this browser keeps, if
// the server confirms it; else the active one, or the newest; else a new one. The browser keeps
// what it gets.
export async function resolveSession({ user, agent, wanted, begin = false }, options) {
  const key = storageKey(user, agent);
  const resolve = (id) =>
    api.post("sessions/resolve", { agent: agent || null, session_id: id, new: begin }, options);
  const known = wanted ?? kept.getItem(key);
  let found = await resolve(known ?? (begin ? null : await newest(agent, options)));
  if (wanted && !found.confirmed) found = await resolve(kept.getItem(key));
  kept.setItem(key, found.session_id);
  return found;
}

// Conversations to which a program gave ids of its own are active nowhere.
async function newest(agent, options) {
  try {
    return (await api.get("sessions/active", { agent }, options)).scope.session;
  } catch (error) {
    if (error.status !== 404) throw error;
    const which = { agent, newest_first: true, limit: 1 };
    return (await api.get("sessions", which, options)).items[0]?.scope.session ?? null;
  }
}

// The agent and the conversation to show. A name that is kept here and can be no agent's is dropped.
export async function whereToTalk({ user, agent, session }, options) {
  const name = agent ?? (await agentOf({ user, session }, options));
  try {
    const found = await resolveSession({ user, agent: name, wanted: session }, options);
    keepAgent(user, name);
    return { agent: name, session: found.session_id };
  } catch (error) {
    if (error.status !== 422 || name !== kept.getItem(agentKey(user))) throw error;
    kept.removeItem(agentKey(user));
    return whereToTalk({ user, agent, session }, options);
  }
}

// The agent to talk to, where the address names none: that of the conversation it names, the last
// one here, that of the newest conversation, or else the one without a name.
async function agentOf({ user, session }, options) {
  const last = kept.getItem(agentKey(user));
  if (!session && last !== null) return last;
  const which = session ? { session } : { newest_first: true };
  const { items } = await api.get("sessions", { ...which, limit: 1 }, options);
  if (session && !items.length) return agentOf({ user }, options);
  return items[0]?.scope.agent ?? "";
}

const agentKey = (user) => `chatAgent_${user}`;
export const keepAgent = (user, agent) => kept.setItem(agentKey(user), agent);

// The messages of a conversation, in pages of 50 from the newest on; `earlier()` reads the page
// before, `refresh()` what is new.
function useLog(session) {
  const pages = usePages("messages", { session });
  const [news, setNews] = useState([]);
  const refresh = async () => setNews((await api.get("messages", { session, limit: 50 })).items);
  const known = new Map();
  for (const entry of [...pages.items, ...news]) known.set(entry.message.message_id, entry);
  const entries = [...known.values()].sort((a, b) => a.seq - b.seq);
  return { ...pages, entries, refresh };
}

// The memories made of a conversation's messages, by the message; those of this visit are `fresh`.
function useMade(session) {
  const pages = usePages("memories", { session, newest_first: true }, { size: 200 });
  const [changed, setChanged] = useState(new Map());
  const update = async (id) => {
    const memory = await api.get(`memories/${encodeURIComponent(id)}`).catch(() => null);
    setChanged((old) => new Map(old).set(id, memory && { ...memory, fresh: true }));
  };
  useChanges(({ event, data }) => {
    if (event === "memory" && (data.session === session || changed.has(data.id))) update(data.id);
  });
  const all = new Map(pages.items.map((memory) => [memory.id, memory]));
  for (const [id, memory] of changed) all.set(id, memory);
  const made = new Map();
  for (const memory of all.values())
    for (const source of memory?.sources ?? [])
      made.set(source, [...(made.get(source) ?? []), memory]);
  return { made, more: pages.more, update };
}

// What went into the windows of a conversation's turns, by the answer's id, or the question's where
// nobody answered. `keep` adds what came with a turn of this visit: texts and reasons, too.
function useReceipts(session) {
  const pages = usePages("receipts", { session }, { size: 100 });
  const [kept, setKept] = useState(new Map());
  const keep = (id, turn) => setKept((old) => new Map(old).set(id, { ...old.get(id), ...turn }));
  const refresh = async () => {
    const { items } = await api.get("receipts", { session, limit: 5 });
    for (const turn of items) keep(turn.message_id ?? turn.asked_id, turn);
  };
  const all = new Map(pages.items.map((turn) => [turn.message_id ?? turn.asked_id, turn]));
  for (const [id, turn] of kept) all.set(id, { ...all.get(id), ...turn });
  return { all, keep, refresh, more: pages.more };
}

const BROKEN = "The connection ended before the answer did.";

// All of a conversation, and how to go on with it.
export function useConversation(session, agent) {
  const log = useLog(session);
  const memories = useMade(session);
  const receipts = useReceipts(session);
  const [live, setLive] = useState(null);
  const running = useRef(null);
  const refresh = () => Promise.all([log.refresh(), receipts.refresh()]).catch(() => {});
  useChanges(({ event, data }) => {
    if (event === "message" && data.session === session && !running.current) refresh();
  });

  const ask = async ({ message, asked_id }) => {
    const stop = new AbortController();
    running.current = stop;
    let turn = { message, asked_id, answer: "", tools: [], seen: {} };
    const show = (changes) => {
      turn = { ...turn, ...changes };
      setLive(turn);
    };
    show({});
    try {
      const body = { message, asked_id, session_id: session, agent_id: agent || null };
      const events = api.stream("POST", "chat", { body, signal: stop.signal });
      for await (const { event, data } of events) show(step(turn, event, data));
      if (!turn.done && !turn.error) show({ error: new ApiError(0, { detail: BROKEN }) });
    } catch (error) {
      if (!stop.signal.aborted) show({ error });
    }
    running.current = null;
    // The conversation is gone, so that it was said in another.
    const { session_id = session } = turn.done ?? {};
    if (session_id !== session) return go({ session: session_id }, { replace: true });
    if (turn.done) receipts.keep(turn.done.message_id ?? turn.asked_id, turn.seen);
    await refresh();
    if (!running.current) setLive(turn.error ? turn : null);
  };
  return {
    log,
    live,
    made: memories.made,
    update: memories.update,
    receipts: receipts.all,
    busy: Boolean(live && !live.error),
    earlier: () => Promise.all([log.more(), memories.more(), receipts.more()]),
    send: (message) => ask({ message, asked_id: newId() }),
    askAgain: ask,
    stop: () => running.current?.abort(),
  };
}

// What an event of /api/chat changes in the turn that is shown.
function step(turn, event, data) {
  const seen = (changes) => ({ seen: { ...turn.seen, ...changes } });
  switch (event) {
    case "memory":
      return seen({ hits: data.hits });
    case "context":
      return seen({ messages: data.messages });
    case "receipt":
      return seen({ receipt: data });
    case "token":
      return { answer: turn.answer + data.text };
    case "tool_started":
      return { answer: "", tools: [...turn.tools, { ...data, said: turn.answer }] };
    case "tool_result":
      return { tools: finished(turn.tools, data) };
    case "error":
      return { error: new ApiError(data.status, data) };
    case "done":
      return { done: data };
    default:
      return {};
  }
}

function finished(tools, result) {
  const at = tools.findIndex((it) => it.name === result.name && it.result === undefined);
  return tools.map((tool, i) => (i === at ? { ...tool, ...result } : tool));
}

// A random id; crypto.randomUUID is not there on a plain http address.
function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

// Messages as the thread shows them: what was asked, tool calls with their results, answers.
export function turnsOf(entries) {
  const rows = [];
  const calls = new Map();
  for (const { message } of entries) {
    if (message.role === "tool" && calls.has(message.tool_call_id)) {
      calls.get(message.tool_call_id).result = message.content;
      continue;
    }
    const text = message.role !== "assistant" || message.content || message.unfinished;
    if (text) rows.push({ type: message.role, message });
    for (const call of message.tool_calls ?? []) {
      const row = { type: "call", message, call, result: undefined };
      calls.set(call.call_id, row);
      rows.push(row);
    }
  }
  return rows;
}
