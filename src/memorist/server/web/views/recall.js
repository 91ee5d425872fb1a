// Recall.

import { html } from "../ui.js";

export default function Recall() {
  return html`<div class="empty"><p>Not here yet.</p></div>`;
}
