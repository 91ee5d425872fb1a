// Health.

import { html } from "../ui.js";

export default function Health() {
  return html`<div class="empty"><p>Not here yet.</p></div>`;
}
