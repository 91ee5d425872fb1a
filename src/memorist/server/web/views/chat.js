// Chat.

import { html } from "../ui.js";

export default function Chat() {
  return html`<div class="empty"><p>Not here yet.</p></div>`;
}
