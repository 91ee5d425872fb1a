// Memories: every memory, found by words and filters, newest first.

import { go } from "../route.js";
import {
  Empty,
  Kind,
  Loaded,
  Marked,
  Problem,
  Skeleton,
  State,
  Time,
  VirtualList,
  html,
  usePages,
  useState,
  useTyped,
} from "../ui.js";

export default function Memories({ route }) {
  const { agent, kind, text = "", show = "" } = route.query;
  const [typed, setTyped] = useState(text);
  const settled = useTyped(typed);
  const pages = usePages("memories", { agent, kind, text: settled, newest_first: true });
  const open = (item) => go({ show: `memory:${item.id}` });
  return html`<div class="pane">
    <div class="toolbar">
      <input
        type="search"
        aria-label="Search memories"
        placeholder="Search memories"
        value=${typed}
        onInput=${(event) => setTyped(event.target.value)}
      />
    </div>
    ${
      pages.error
        ? html`<${Problem} error=${pages.error} retry=${pages.reload} />`
        : !pages.ready && pages.slow && !pages.items.length
          ? html`<${Skeleton} />`
          : html`<${VirtualList}
              label="Memories"
              items=${pages.items}
              onMore=${pages.more}
              onOpen=${open}
              selected=${show.replace(/^memory:/, "")}
              empty=${pages.ready && html`<${Empty} command='memorist remember "I live in Berlin"'>Nothing is remembered yet.<//>`}
              render=${(item) =>
                html` <span class="grow clip"
                    ><${Marked} text=${item.text} words=${settled.split(/\s+/)}
                  /></span>
                  <${Kind} kind=${item.kind} /><${State} item=${item} /><${Time}
                    at=${item.created_at}
                  />`}
            />`
    }
  </div>`;
}
