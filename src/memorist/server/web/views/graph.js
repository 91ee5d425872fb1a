// Graph.

import { html } from "../ui.js";

export default function Graph() {
  return html`<div class="empty"><p>Not here yet.</p></div>`;
}
