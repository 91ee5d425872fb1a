// Timeline.

import { html } from "../ui.js";

export default function Timeline() {
  return html`<div class="empty"><p>Not here yet.</p></div>`;
}
