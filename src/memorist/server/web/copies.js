// A context in the form that a provider's API takes, as JSON to copy.

export const openai = ({ messages, tools = [] }) => ({
  messages,
  ...(tools.length ? { tools } : {}),
});

// Anthropic's: the system prompt apart, tool results in user messages, no role twice in a row.
export function anthropic({ messages, tools = [] }) {
  const system = messages.filter((it) => it.role === "system").map((it) => String(it.content));
  const turns = [];
  for (const message of messages.filter((it) => it.role !== "system")) {
    const role = message.role === "assistant" ? "assistant" : "user";
    if (turns.at(-1)?.role === role) turns.at(-1).content.push(...partsOf(message));
    else turns.push({ role, content: partsOf(message) });
  }
  return {
    ...(system.length ? { system: system.join("\n\n") } : {}),
    messages: turns,
    ...(tools.length ? { tools: tools.map(toolOf) } : {}),
  };
}

function partsOf({ role, content, tool_call_id: callId, tool_calls: calls = [] }) {
  const list = typeof content === "string" ? [{ type: "text", text: content }] : (content ?? []);
  const parts = list.map(imageOf).filter((it) => it.type !== "text" || it.text.trim());
  if (role === "tool") return [{ type: "tool_result", tool_use_id: callId, content: parts }];
  return [...parts, ...calls.map(callOf)];
}

function imageOf(it) {
  if (it.type !== "image_url") return it;
  const { url } = it.image_url;
  const [, type, data] = /^data:([\w.+/-]+);base64,(.*)$/s.exec(url) ?? [];
  const source = data ? { type: "base64", media_type: type, data } : { type: "url", url };
  return { type: "image", source };
}

function callOf({ id, function: { name, arguments: text } }) {
  let input;
  try {
    input = JSON.parse(text);
  } catch {
    input = { input: text };
  }
  return { type: "tool_use", id, name, input };
}

const toolOf = ({ function: it }) => ({
  name: it.name,
  description: it.description,
  input_schema: it.parameters,
});
