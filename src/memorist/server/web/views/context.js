// Context.

import { html } from "../ui.js";

export default function Context() {
  return html`<div class="empty"><p>Not here yet.</p></div>`;
}
