"""Controls beside a robot in the browser: their values, and callbacks for changes made on the page."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

Three = tuple[float, float, float]


def as_vec3(x: Any) -> Three | None:
    """Return a list of three finite numbers as a tuple, anything else as None: pages may send anything."""
    if not (isinstance(x, list) and len(x) == 3 and all(isinstance(y, int | float) and np.isfinite(y) for y in x)):
        return None
    return float(x[0]), float(x[1]), float(x[2])


class Control:
    """One control of the panel. A value set on the page calls the callbacks of `on_update`; a value set by the program is
    shown on the page.

    Attributes:
        kind: Type of the control: checkbox, button, slider, choice, vector, note or heading.
        label: Text beside it.
        about: Further settings of its kind, for instance the range of a slider.
        value: Current value.
        visible: Whether it is shown.
    """

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
        """Register a function that is called after the page changed the value or the button was pressed."""
        self._calls.append(call)

    def receive(self, value: Any) -> None:
        """Set a value that the page sent."""
        self._value = self._validated(value)
        for call in self._calls:
            call()
        self._panel.changed()

    def _validated(self, value: Any) -> Any:
        """Return a valid value of this kind; the current one if `value` is not: pages may send anything."""
        if self.kind == "checkbox":
            return bool(value)
        if self.kind == "slider" and isinstance(value, int | float) and np.isfinite(value):
            return float(np.clip(value, self.about["min"], self.about["max"]))
        if self.kind == "choice" and value in self.about["options"]:
            return value
        if self.kind == "vector" and (numbers := as_vec3(value)) is not None:
            return numbers
        return self._value


class Panel:
    """All controls of a page, in order. changed: callback for every change of a value or of visibility."""

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
        """Add a text that is shown while it is visible."""
        return self._add("note", "", "", visible=False)

    def heading(self, text: str) -> Control:
        """Add a heading above the controls that follow."""
        return self._add("heading", text)

    def described(self) -> list[dict[str, Any]]:
        """Return the descriptions from which the page builds the controls."""
        return [{"kind": c.kind, "label": c.label, **c.about} for c in self.controls]

    def values(self) -> list[list[Any]]:
        """Return [value, visible] of each control."""
        return [[c.value, c.visible] for c in self.controls]
