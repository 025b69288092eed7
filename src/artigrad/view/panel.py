"""The controls beside a robot in the browser: what they are worth, who is told when the page changes one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

Three = tuple[float, float, float]


def three(x: Any) -> Three | None:
    """Three numbers that a page sent, if that is what they are."""
    if not (isinstance(x, list) and len(x) == 3 and all(isinstance(y, int | float) and np.isfinite(y) for y in x)):
        return None
    return float(x[0]), float(x[1]), float(x[2])


class Control:
    """One control. Its value may be set by the page, which calls those who asked by `on_update`, and by the program, which
    the page then shows. about: label, and what else its kind needs."""

    def __init__(self, panel: Panel, kind: str, label: str, value: Any, visible: bool, **about: Any):
        self._panel, self.kind, self.label, self.about = panel, kind, label, about
        self._value, self._visible = value, visible
        self._calls: list[Callable[[], None]] = []

    @property
    def value(self) -> Any:
        return self._value

    @value.setter
    def value(self, new: Any) -> None:
        if new != self._value:
            self._value = new
            self._panel.changed()

    @property
    def visible(self) -> bool:
        return self._visible

    @visible.setter
    def visible(self, wanted: bool) -> None:
        if wanted != self._visible:
            self._visible = wanted
            self._panel.changed()

    def on_update(self, call: Callable[[], None]) -> None:
        """Have a function called when the page has changed the value, or the button was pressed."""
        self._calls.append(call)

    def told(self, value: Any) -> None:
        """What the page says."""
        self._value = self._understood(value)
        for call in self._calls:
            call()
        self._panel.changed()

    def _understood(self, value: Any) -> Any:
        """A value of its kind, or the one that it has: pages may say anything."""
        if self.kind == "checkbox":
            return bool(value)
        if self.kind == "slider" and isinstance(value, int | float) and np.isfinite(value):
            return float(np.clip(value, self.about["min"], self.about["max"]))
        if self.kind == "choice" and value in self.about["options"]:
            return value
        if self.kind == "vector" and (numbers := three(value)) is not None:
            return numbers
        return self._value


class Panel:
    """All controls of a page, in order. changed: what is done whenever one of them is another than before."""

    def __init__(self, changed: Callable[[], None]):
        self.changed, self.controls = changed, list[Control]()

    def _add(self, kind: str, label: str, value: Any = None, *, visible: bool = True, **about: Any) -> Control:
        self.controls.append(Control(self, kind, label, value, visible, **about))
        return self.controls[-1]

    def checkbox(self, label: str, value: bool) -> Control:
        return self._add("checkbox", label, value)

    def button(self, label: str) -> Control:
        return self._add("button", label)

    def slider(self, label: str, low: float, high: float, value: float) -> Control:
        return self._add("slider", label, value, min=low, max=high, step=(high - low) / 400)

    def choice(self, label: str, options: Iterable[str], value: str) -> Control:
        return self._add("choice", label, value, options=list(options))

    def vector(self, label: str, value: Three, step: float) -> Control:
        return self._add("vector", label, value, step=step)

    def note(self) -> Control:
        """Words that are shown while it is visible."""
        return self._add("note", "", "", visible=False)

    def heading(self, text: str) -> Control:
        """Words above the controls that follow."""
        return self._add("heading", text)

    def described(self) -> list[dict[str, Any]]:
        """What the page makes them of."""
        return [{"kind": c.kind, "label": c.label, **c.about} for c in self.controls]

    def values(self) -> list[list[Any]]:
        """Value, and whether it is shown, of each."""
        return [[c.value, c.visible] for c in self.controls]
