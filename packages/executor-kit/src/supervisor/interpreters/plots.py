"""A matplotlib backend: `show` or the end of the block displays figures as pictures and closes them."""

import io

from matplotlib._pylab_helpers import Gcf
from matplotlib.backend_bases import FigureManagerBase
from matplotlib.backends.backend_agg import FigureCanvasAgg

# Shows a figure as a bundle of MIME types; set by `notebook.py`.
publish = None


class FigureManager(FigureManagerBase):
    """Shows figures by displaying them."""

    @classmethod
    def pyplot_show(cls, *, block=None):
        show()

    def show(self):
        show_figure(self.canvas.figure)


class FigureCanvas(FigureCanvasAgg):
    """Draws with Agg, into memory."""

    manager_class = FigureManager


def show(*, block=None):
    """Displays all open figures, and closes them."""
    try:
        for manager in Gcf.get_all_fig_managers():
            show_figure(manager.canvas.figure)
    finally:
        Gcf.destroy_all()


def show_figure(figure):
    if not figure.axes and not figure.lines and not figure.texts:
        return
    picture = io.BytesIO()
    figure.savefig(picture, format="png", bbox_inches="tight")
    publish(figure, {"image/png": picture.getvalue(), "text/plain": repr(figure)})
