"""Reads the data of matplotlib's figures, in the form in which clients know charts. Python 3.8 or later."""

import datetime
import re

# Points of one figure; those with more have no data.
MOST_POINTS = 100_000


def chart_of(figure):
    """Returns `None` for a figure without data, or with too much of it."""
    axes = [each for each in figure.axes if each.has_data() and each.get_label() != "<colorbar>"]
    if not axes or sum(size(each) for each in axes) > MOST_POINTS:
        return None
    if len(axes) == 1:
        return chart(axes[0])
    return {"type": "superchart", "title": suptitle(figure), "elements": [chart(each) for each in axes]}


def suptitle(figure):
    # Older versions have no method for it.
    found = figure.get_suptitle() if hasattr(figure, "get_suptitle") else getattr(figure._suptitle, "get_text", str)()
    return found or None


def size(axes):
    lines = sum(len(each.get_xdata()) for each in axes.lines)
    return lines + sum(len(each.get_offsets()) for each in axes.collections) + len(axes.patches)


def chart(axes):
    kind = kind_of(axes)
    common = {"type": kind, "title": axes.get_title() or None}
    read = {"line": lines, "scatter": scatter, "bar": bars, "pie": pie, "box_and_whisker": boxes}.get(kind)
    return dict(common, **read(axes)) if read else dict(common, elements=[])


def kind_of(axes):
    from matplotlib.collections import PathCollection
    from matplotlib.patches import PathPatch, Rectangle, Wedge

    patches, collections = list(axes.patches), list(axes.collections)
    drawn = [each for each in axes.lines if not is_reference(each)]
    if axes.images or axes.tables or axes.artists:
        return "unknown"
    if patches and all(isinstance(each, Wedge) for each in patches):
        return "pie"
    if patches and all(isinstance(each, PathPatch) for each in patches) and axes.lines and not collections:
        return "box_and_whisker"
    if patches:
        barred = {id(bar) for each in bar_containers(axes) for bar in each}
        known = all(isinstance(each, Rectangle) and id(each) in barred for each in patches)
        return "bar" if known and not points_of(collections, PathCollection) else "unknown"
    if collections:
        only = all(isinstance(each, PathCollection) for each in collections)
        return "scatter" if only and not drawn else "unknown"
    return "line"


def points_of(collections, kind):
    return [each for each in collections if isinstance(each, kind)]


def bar_containers(axes):
    from matplotlib.container import BarContainer

    return [each for each in axes.containers if isinstance(each, BarContainer)]


def is_reference(line):
    """Whether it is a line across the chart, such as that of `axhline`."""
    x, y = list(line.get_xdata()), list(line.get_ydata())
    return len(x) == len(y) == 2 and (bool(x[0] == x[1]) or bool(y[0] == y[1]))


def labels(axes, swapped=False):
    """The names of the axes, and the units in parentheses after them."""
    x, y = axes.get_xlabel() or None, axes.get_ylabel() or None
    if swapped:
        x, y = y, x
    return {"x_label": x, "y_label": y, "x_unit": unit(x), "y_unit": unit(y)}


def unit(label):
    found = re.search(r"(?<=\s)\((?P<round>[^()]*)\)|\[(?P<square>[^\[\]]*)\]", label or "")
    return (found.group("round") or found.group("square")) if found else None


def plane(axes):
    found = labels(axes)
    for name, axis, scale in (("x", axes.xaxis, axes.get_xscale()), ("y", axes.yaxis, axes.get_yscale())):
        ticks = [float(each) for each in axis.get_ticklocs()]
        texts = [each.get_text() for each in axis.get_ticklabels()]
        kind = scale_of(axis, scale, ticks, texts)
        found[name + "_scale"], found[name + "_tick_labels"] = kind, texts
        found[name + "_ticks"] = [moment(each) for each in ticks] if kind == "datetime" else ticks
    return found


def scale_of(axis, scale, ticks, texts):
    if is_of_dates(axis):
        return "datetime"
    if scale != "linear":
        return scale
    if is_named(axis) and ticks == list(range(len(ticks))) and texts != [str(n) for n in range(len(ticks))]:
        return "categorical"
    return "linear"


def converter(axis):
    return axis.get_converter() if hasattr(axis, "get_converter") else axis.converter


def is_of_dates(axis):
    from matplotlib import dates, units

    known = tuple({type(units.registry.get(each)) for each in (datetime.date, datetime.datetime)} - {type(None)})
    return isinstance(converter(axis), known) or isinstance(axis.get_major_locator(), dates.DateLocator)


def is_named(axis):
    """Whether its ticks have names of their own, not numbers."""
    from matplotlib.category import StrCategoryConverter
    from matplotlib.ticker import FixedFormatter, FuncFormatter

    named = (FixedFormatter, FuncFormatter)
    return isinstance(converter(axis), StrCategoryConverter) or isinstance(axis.get_major_formatter(), named)


def moment(number):
    from matplotlib.dates import num2date

    return num2date(number).isoformat()


def value(given):
    """A coordinate as JSON: a number, a name, or a time."""
    if isinstance(given, (datetime.date, datetime.datetime)):
        return given.isoformat()
    if type(given).__name__ == "datetime64":
        return str(given.astype("datetime64[s]"))
    if isinstance(given, str):
        return str(given)
    try:
        return float(given)
    except (TypeError, ValueError):
        return None


def lines(axes):
    elements = []
    for line in axes.lines:
        if is_reference(line):
            continue
        points = [[value(x), value(y)] for x, y in zip(line.get_xdata(), line.get_ydata())]
        elements.append({"label": named(line, "_child", "Line"), "points": points})
    return dict(plane(axes), elements=elements)


def named(artist, prefix, kind):
    """The label of an artist, or a name for one that has only matplotlib's."""
    label = str(artist.get_label())
    return label.replace(prefix, kind + " ", 1) if label.startswith(prefix) else label


def scatter(axes):
    found, elements = plane(axes), []
    for each in axes.collections:
        points = [
            [moment(at) if found[name + "_scale"] == "datetime" else value(at) for name, at in zip("xy", point)]
            for point in each.get_offsets()
        ]
        elements.append({"label": named(each, "_child", "Dataset"), "points": points})
    return dict(found, elements=elements)


def bars(axes):
    containers, elements = bar_containers(axes), []
    lying = all(orientation(each) == "horizontal" for each in containers)
    axis = axes.yaxis if lying else axes.xaxis
    ticks = list(zip(axis.get_ticklocs(), (each.get_text() for each in axis.get_ticklabels())))
    for container in containers:
        group = named(container, "_container", "Group")
        for bar in container:
            start, extent = (bar.get_y(), bar.get_height()) if lying else (bar.get_x(), bar.get_width())
            height = bar.get_width() if lying else bar.get_height()
            elements.append(
                {"label": bar_label(axis, ticks, start + extent / 2), "group": group, "value": value(height)}
            )
    return dict(labels(axes, swapped=lying), elements=elements)


def orientation(container):
    known = getattr(container, "orientation", None)
    if known is not None:
        return known
    return "horizontal" if len({bar.get_height() for bar in container}) == 1 < len(container) else "vertical"


def bar_label(axis, ticks, middle):
    if is_of_dates(axis):
        return moment(middle)
    # The bars of a group stand beside its tick.
    if is_named(axis) and ticks:
        return min(ticks, key=lambda tick: abs(tick[0] - middle))[1]
    return "%g" % middle


def pie(axes):
    elements = [
        {"label": str(each.get_label()), "angle": rounded(abs(each.theta2 - each.theta1)), "radius": rounded(each.r)}
        for each in axes.patches
    ]
    return {"elements": elements}


def rounded(number):
    """Without what floating-point numbers add."""
    return float("%.8g" % number)


def boxes(axes):
    found = []
    for patch in axes.patches:
        corners = patch.get_path().vertices
        found.append([sorted(rounded(each) for each in corners[:, side]) for side in (0, 1)])
    # A line along each box is its median; it tells how the boxes stand.
    lying = all(any(is_median(line, box, 1) for line in axes.lines) for box in found)
    across, along = (1, 0) if lying else (0, 1)
    axis = axes.yaxis if lying else axes.xaxis
    ticks = list(zip(axis.get_ticklocs(), (each.get_text() for each in axis.get_ticklabels())))
    elements = []
    for box in found:
        middle = (box[across][0] + box[across][-1]) / 2
        label = min(ticks, key=lambda tick: abs(tick[0] - middle))[1] if ticks else "%g" % middle
        elements.append(dict({"label": label}, **box_values(axes, box, across, along)))
    return dict(labels(axes, swapped=lying), elements=elements)


def coordinates(line):
    return [[rounded(each) for each in data] for data in (line.get_xdata(), line.get_ydata())]


def is_median(line, box, across):
    """Whether a line runs from one side of the box to the other, across its length."""
    data = coordinates(line)
    along = 1 - across
    if len(data[0]) != 2 or data[along][0] != data[along][1]:
        return False
    inside = box[along][0] <= data[along][0] <= box[along][-1]
    return inside and sorted(data[across]) == [box[across][0], box[across][-1]]


def box_values(axes, box, across, along):
    low, high = box[along][0], box[along][-1]
    found = {"min": low, "first_quartile": low, "median": None, "third_quartile": high, "max": high, "outliers": []}
    for line in axes.lines:
        data = coordinates(line)
        if not data[0] or not all(box[across][0] <= each <= box[across][-1] for each in data[across]):
            continue
        if is_median(line, box, across):
            found["median"] = data[along][0]
        elif line.get_linestyle() in ("None", "none", " ", ""):
            found["outliers"] += data[along]
        elif len(data[0]) == 2 and data[across][0] == data[across][1]:
            if max(data[along]) == low:
                found["min"] = min(data[along])
            elif min(data[along]) == high:
                found["max"] = max(data[along])
    return found
