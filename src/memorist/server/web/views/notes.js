// Notes.

import { html } from "../ui.js";

export default function Notes() {
  return html`<div class="empty"><p>Not here yet.</p></div>`;
}
