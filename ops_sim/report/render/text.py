"""Text on the page for mail that fits: measured as it is drawn, broken into lines, cut, and kept apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text
    from matplotlib.transforms import Bbox

    from ops_sim.report.value import Threshold

_CUT = "…"
_POINTS_PER_INCH = 72


class Ruler:
    """Widths in points, of the font that the figure draws with."""

    def __init__(self, figure: Figure) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        self._renderer = FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]
        self._points = _POINTS_PER_INCH / figure.dpi

    def width(self, text: str, size: float, weight: str = "normal") -> float:
        from matplotlib.font_manager import FontProperties

        font = FontProperties(size=size, weight=weight)
        wide, _, _ = self._renderer.get_text_width_height_descent(text, font, ismath=False)
        return float(wide * self._points)

    def box(self, text: Text) -> Bbox:
        """The rectangle in which it is drawn, in pixels."""
        return text.get_window_extent(self._renderer)

    def wrapped(
        self, text: str, width: float, size: float, lines: int, weight: str = "normal"
    ) -> list[str]:
        """Broken at spaces, and within words that are longer than a line, into so many lines at most; what does not fit is
        cut, and one sees that it is."""

        def fits(line: str) -> bool:
            return self.width(line, size, weight) <= width

        found: list[str] = []
        words = (piece for word in text.split() for piece in _pieces(word, fits))
        for word in words:
            longer = f"{found[-1]} {word}" if found else word
            if found and fits(longer):
                found[-1] = longer
            elif len(found) < lines:
                found.append(word)
            else:
                found[-1] += f" {_CUT}"
                break
        return [line if fits(line) else _cut(line, fits) for line in found]


Fits = Callable[[str], bool]


def _pieces(word: str, fits: Fits) -> Iterator[str]:
    """Cuts a word that is longer than a line into pieces that fill one."""
    while not fits(word) and len(word) > 1:
        most = next((n for n in range(len(word) - 1, 1, -1) if fits(word[:n])), 1)
        yield word[:most]
        word = word[most:]
    yield word


def _cut(line: str, fits: Fits) -> str:
    line = line.removesuffix(_CUT).rstrip()
    while line and not fits(line + _CUT):
        line = line[:-1].rstrip()
    return line + _CUT


def label_thresholds(
    sides: list[Axes],
    thresholds: tuple[Threshold, ...],
    ruler: Ruler,
    size: float,
    colours: list[str],
) -> None:
    """Writes each label above its line at the left, further to the right where something is written already. `sides` are the axes of
    one plot, that of the thresholds first; their limits must be set."""
    axes = sides[0]
    pixels = axes.figure.dpi / _POINTS_PER_INCH
    plot = axes.get_window_extent()
    taken = [ruler.box(text) for side in sides for text in side.texts]
    for line, colour in zip(thresholds, colours, strict=True):
        wide, high = (ruler.width(line.label, size) + size) * pixels, 1.4 * size * pixels
        left, up = plot.x0 + 2 * pixels, axes.transData.transform((0, line.value))[1]
        while inway := [box for box in taken if box.overlaps(_box(left, up, wide, high))]:
            left = max(box.x1 for box in inway) + pixels
        taken.append(_box(left, up, wide, high))
        axes.annotate(
            *(line.label.replace("$", r"\$"), ((left - plot.x0) / plot.width, line.value)),
            xycoords=("axes fraction", "data"),
            fontsize=size,
            color=colour,
            va="bottom",
        )


def _box(left: float, bottom: float, wide: float, high: float) -> Bbox:
    from matplotlib.transforms import Bbox

    return Bbox.from_bounds(left, bottom, wide, high)
