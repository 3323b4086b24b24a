"""Shows values as notebooks do, by IPython's rules, and provides the names of `IPython.display`, where IPython is not installed.

Whoever loads this as a module calls `prepare`. Python 3.8 or later.
"""

import base64
import itertools
import json
import sys

_longest = 33554432
_numbers = itertools.count(1)
# The first takes each message, and returns whether it was sent; the second returns more types that a value is displayed as.
_send = _additions = None
_methods = {
    "text/html": "_repr_html_",
    "text/markdown": "_repr_markdown_",
    "image/svg+xml": "_repr_svg_",
    "image/png": "_repr_png_",
    "image/jpeg": "_repr_jpeg_",
    "application/pdf": "_repr_pdf_",
    "text/latex": "_repr_latex_",
    "application/json": "_repr_json_",
    "application/javascript": "_repr_javascript_",
}


class DisplayObject:
    """Content of one type."""

    _kind = "text/plain"

    def __init__(self, data=None, url=None, filename=None, metadata=None, **_):
        if filename is not None:
            with open(filename, "rb") as file:
                data = file.read()
        if data is None:
            raise ValueError("There is nothing to display: pass data or a filename. URLs are not fetched.")
        self.data, self.metadata = data, metadata

    def _repr_mimebundle_(self, include=None, exclude=None):
        binary = isinstance(self.data, bytes) and self._kind.startswith("text")
        return {self._kind: self.data.decode() if binary else self.data, "text/plain": repr(self)}

    def __repr__(self):
        return "<IPython.core.display.%s object>" % type(self).__name__


def _kind(name, kind):
    return type(name, (DisplayObject,), {"_kind": kind, "__module__": "IPython.display"})


class Image(DisplayObject):
    """A picture: bytes, or the name of a file."""

    def __init__(self, data=None, url=None, filename=None, format=None, **others):
        if isinstance(data, str):
            data, filename = None, data
        super().__init__(data, url, filename, **others)
        found = "jpeg" if self.data[:2] == b"\xff\xd8" else "gif" if self.data[:3] == b"GIF" else "png"
        self._kind = "image/" + {"jpg": "jpeg"}.get(format, format or found)


class Pretty(DisplayObject):
    """Plain text."""

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/plain": self.data}


class DisplayHandle:
    """A display that can be updated."""

    def __init__(self, display_id=None):
        self.display_id = display_id or "display-%d" % next(_numbers)

    def display(self, value, **options):
        display(value, display_id=self.display_id, **options)

    def update(self, value, **options):
        update_display(value, display_id=self.display_id, **options)


def bundle_of(value):
    """A value in each type that it can be displayed as; `None` if it has displayed itself."""
    shows_itself = _method(value, "_ipython_display_")
    if shows_itself is not None:
        shows_itself()
        return None
    bundle = {"text/plain": repr(value)}
    whole = _method(value, "_repr_mimebundle_")
    found = whole(include=None, exclude=None) if whole else None
    if found is not None:
        return {**bundle, **(found[0] if isinstance(found, tuple) else found), **_additions(value)}
    for kind, name in _methods.items():
        method = _method(value, name)
        content = method() if method else None
        if content is not None:
            bundle[kind] = content[0] if isinstance(content, tuple) else content
    return {**bundle, **_additions(value)}


def _method(value, name):
    # A class has the methods of its objects; mocks have every method.
    if isinstance(value, type) or getattr(value, "_ipython_canary_method_should_not_exist_", None) is not None:
        return None
    method = getattr(value, name, None)
    return method if callable(method) else None


def show(value):
    """The value of a block's last expression."""
    if value is None:
        return
    vars(sys.modules["__main__"])["_"] = value
    bundle = bundle_of(value)
    if bundle is not None and set(bundle) == {"text/plain"}:
        print(bundle["text/plain"])
    elif bundle is not None:
        publish(bundle)


def display(*values, raw=False, display_id=None, update=False, clear=False, **_):
    """Displays values, each in all the types that it offers; `display_id`: to update it later."""
    if clear:
        clear_output(wait=True)
    handle = None
    if display_id is not None and not update:
        handle = DisplayHandle(None if display_id is True else display_id)
        display_id = handle.display_id
    for value in values:
        bundle = value if raw else bundle_of(value)
        if bundle is not None:
            publish(bundle, display_id, update)
    return handle


def update_display(value, *, display_id, **options):
    display(value, display_id=display_id, update=True, **options)


def clear_output(wait=False):
    _tell({"clear": True, "wait": bool(wait)})


def publish(bundle, display_id=None, update=False):
    """Displays the same content in several types; the host prints what can be read of it."""
    if not _tell({"data": bundle, "id": display_id, "update": update}) and isinstance(bundle.get("text/plain"), str):
        print(bundle["text/plain"])


def _tell(message):
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    return _send(message)


def encode(message):
    """A message as JSON, after its length; `None` if it is too long."""
    body = json.dumps(message, default=_encode).encode()
    if len(body) > _longest:
        print("A display larger than %d MiB was left out." % (_longest >> 20), file=sys.stderr)
        return None
    return len(body).to_bytes(4, "big") + body


def _encode(value):
    return base64.b64encode(value).decode() if isinstance(value, (bytes, bytearray)) else repr(value)


def finish():
    """Shows the figures that the block left open; called at its end."""
    plots = sys.modules.get("_fenced_plots")
    if plots is not None:
        plots.show()


class Offered:
    """Finds our modules only when they are imported: libraries look in `sys.modules` for IPython to see where they run."""

    fill = {}

    def find_spec(name, path=None, target=None):
        if name in Offered.fill:
            import importlib.util

            return importlib.util.spec_from_loader(name, Offered, is_package=name == "IPython")

    def create_module(spec):
        return None

    def exec_module(module):
        Offered.fill[module.__name__](vars(module))


def _fill_package(names):
    names.update(__version__="9.0.0", version_info=(9, 0, 0, ""), get_ipython=lambda: None)


def _fill_display(names):
    kinds = {"HTML": "text/html", "Markdown": "text/markdown", "SVG": "image/svg+xml", "Latex": "text/latex"}
    kinds.update({"Math": "text/latex", "JSON": "application/json", "Javascript": "application/javascript"})
    offered = [Image, Pretty, DisplayObject, DisplayHandle, display, update_display, clear_output]
    names.update({each.__name__: each for each in offered}, **{name: _kind(name, kinds[name]) for name in kinds})


def _fill_plots(names):
    exec(_plots, names)
    names["publish"] = lambda figure, bundle: publish({**bundle, **_additions(figure)})


def prepare(send, plots, additions=lambda value: {}):
    """Makes the modules importable; `plots` is the source of the backend that matplotlib imports."""
    global _send, _additions, _plots
    _send, _additions, _plots = send, additions, compile(plots, "<fenced>", "exec")
    Offered.fill.update({"_fenced_plots": _fill_plots, "IPython": _fill_package, "IPython.display": _fill_display})
    sys.meta_path.append(Offered)
