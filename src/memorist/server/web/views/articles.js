// Articles.

import { html } from "../ui.js";

export default function Articles() {
  return html`<div class="empty"><p>Not here yet.</p></div>`;
}
