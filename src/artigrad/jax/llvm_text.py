"""Text of a function in LLVM's language, written line by line. Values are names or constants."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

Value = int | str


class LlvmText:
    """One function. Counters of loops lie in memory; LLVM puts them into registers."""

    def __init__(self, head: str):
        self._head, self._lines, self._slots, self._count = head, list[str](), list[str](), 0

    def __str__(self) -> str:
        return "\n".join([f"define {self._head} {{", "entry:", *self._slots, *self._lines, "}", ""])

    def name(self, hint: str = "x") -> str:
        self._count += 1
        return f"%{hint}{self._count}"

    def line(self, text: str) -> None:
        self._lines.append(f"  {text}")

    def label(self, name: str) -> None:
        self._lines.append(f"{name[1:]}:")

    def op(self, text: str) -> str:
        """The result of an instruction."""
        out = self.name()
        self.line(f"{out} = {text}")
        return out

    def slot(self, kind: str = "i64") -> str:
        """Room on the stack."""
        out = self.name("slot")
        self._slots.append(f"  {out} = alloca {kind}, align 8")
        return out

    # -- memory --------------------------------------------------------------------------------------------------------
    def at(self, pointer: str, offset: Value) -> str:
        """A pointer plus an offset in bytes."""
        return pointer if offset == 0 else self.op(f"getelementptr i8, ptr {pointer}, i64 {offset}")

    def load(self, pointer: str, offset: Value = 0, kind: str = "i64") -> str:
        return self.op(f"load {kind}, ptr {self.at(pointer, offset)}")

    def store(self, value: Value, pointer: str, offset: Value = 0, kind: str = "i64") -> None:
        self.line(f"store {kind} {value}, ptr {self.at(pointer, offset)}")

    def copy(self, to: str, source: str, size: Value) -> None:
        self.call("void", "@llvm.memcpy.p0.p0.i64", f"ptr {to}", f"ptr {source}", f"i64 {size}", "i1 false")

    # -- numbers -------------------------------------------------------------------------------------------------------
    def add(self, a: Value, b: Value) -> str:
        return self.op(f"add i64 {a}, {b}")

    def sub(self, a: Value, b: Value) -> str:
        return self.op(f"sub i64 {a}, {b}")

    def mul(self, a: Value, b: Value) -> str:
        return self.op(f"mul i64 {a}, {b}")

    def compare(self, how: str, a: Value, b: Value, kind: str = "i64") -> str:
        return self.op(f"icmp {how} {kind} {a}, {b}")

    def select(self, condition: str, a: Value, b: Value) -> str:
        return self.op(f"select i1 {condition}, i64 {a}, i64 {b}")

    def minimum(self, a: Value, b: Value) -> str:
        return self.select(self.compare("slt", a, b), a, b)

    def call(self, gives: str, function: str, *arguments: str) -> str:
        text = f"call {gives} {function}({', '.join(arguments)})"
        if gives != "void":
            return self.op(text)
        self.line(text)
        return ""

    # -- control -------------------------------------------------------------------------------------------------------
    @contextmanager
    def when(self, condition: str, leaves: bool = False) -> Iterator[None]:
        """A branch; `leaves` where it ends by returning."""
        yes, no = self.name("yes"), self.name("no")
        self.line(f"br i1 {condition}, label {yes}, label {no}")
        self.label(yes)
        yield
        if not leaves:
            self.line(f"br label {no}")
        self.label(no)

    @contextmanager
    def loop(self, end: Value, start: Value = 0, step: int = 1) -> Iterator[str]:
        """start, start + step, ... below end."""
        counter, head, body, done = self.slot(), self.name("head"), self.name("body"), self.name("done")
        self.store(start, counter)
        self.line(f"br label {head}")
        self.label(head)
        i = self.load(counter)
        self.line(f"br i1 {self.compare('slt', i, end)}, label {body}, label {done}")
        self.label(body)
        yield i
        self.store(self.add(i, step), counter)
        self.line(f"br label {head}")
        self.label(done)
