"""Every misuse of staged code fails while staging, with a message that has the replacement."""

import numpy as np
import pytest

from artigrad.compiler import (
    INT,
    ROBOTS,
    WORK,
    Kernel,
    Layout,
    StagingError,
    Table,
    Target,
    carry,
    loop,
    select,
    switch,
)
from artigrad.physics.spatial import Force, Motion, Transform, Vec3, cross


def staged(body):
    """Stage a body with an integer n, arrays x and y, and scratch w."""
    return Kernel("misuse", body, {"n": INT, "x": ROBOTS, "y": ROBOTS, "w": WORK}, Target()).stage()


def raises(match, body):
    with pytest.raises(StagingError, match=match):
        staged(body)


def test_if_on_a_symbol():
    def body(n, x, y, w):
        if x[0] > 0.0:
            y[0] = 1.0

    raises("select", body)


def test_python_loop_over_a_symbol():
    def body(n, x, y, w):
        for k in range(n):
            y[k] = x[k]

    raises(r"loop\(n\)", body)


def test_value_of_a_loop_used_after_it():
    def body(n, x, y, w):
        for k in loop(n):
            last = x[k]
        y[0] = last

    raises("carry", body)


def test_forgotten_carry():
    def body(n, x, y, w):
        total = x[0] * 2.0
        for k in loop(n):
            total = total + x[k]
        y[0] = 1.0

    raises(r"total = carry", body)


def test_forgotten_carry_of_a_struct():
    def body(n, x, y, w):
        f = x.struct(0, Vec3)
        for k in loop(n):
            y[k] = f.x
            f = cross(f, f)

    raises(r"f = carry", body)


def test_carry_of_another_type():
    def body(n, x, y, w):
        f = carry(x.struct(0, Vec3))
        for _ in loop(n):
            f.value = Motion(x.struct(0, Vec3), x.struct(3, Vec3))

    raises("holds a Vec3", body)


def test_mixed_up_shapes():
    raises("add a Vec3 and a Motion", lambda n, x, y, w: x.struct(0, Vec3) + Motion.zero())
    raises("dot, cross or outer", lambda n, x, y, w: x.struct(0, Vec3) * x.struct(0, Vec3))
    raises("name the map", lambda n, x, y, w: Transform.identity() @ Motion.zero())
    raises("parts w, v", lambda n, x, y, w: Motion(x.struct(0, Vec3)))
    raises("Motion.w holds a Vec3", lambda n, x, y, w: Motion(x[0], x.struct(0, Vec3)))


def test_wrong_field_and_wrong_type_of_field():
    layout = Layout(v=Motion, m=float)

    def unknown(n, x, y, w):
        y[0] = Table(w.memory, layout)[0].velocity

    def wrong(n, x, y, w):
        Table(w.memory, layout)[0].v = Force.zero()

    raises("rows of this table have v, m", unknown)
    raises("field 'v' holds a Motion, not a Force", wrong)


def test_assigning_to_a_part_of_a_value():
    def body(n, x, y, w):
        x.struct(0, Vec3).x = 1.0

    raises("build a new one", body)


def test_cases_that_return_different_things():
    raises("same one from each", lambda n, x, y, w: switch(n, {0: lambda: x[0], 1: lambda: (x[0], x[1])}))


def test_select_on_an_integer():
    raises("switch", lambda n, x, y, w: select(n, x[0], x[1]))


def test_select_of_two_types():
    raises("one type", lambda n, x, y, w: select(x[0] > 0.0, Motion.zero(), Force.zero()))


def test_power_and_numbers():
    raises("multiply", lambda n, x, y, w: x[0] ** 2)
    raises("keep it symbolic", lambda n, x, y, w: float(x[0]))
    raises("cannot be unpacked", lambda n, x, y, w: [*x[0]])


def test_staged_code_outside_a_kernel():
    with pytest.raises(StagingError, match="inside a kernel"):
        next(iter(loop(3)))


def test_overlay_must_fit():
    with pytest.raises(StagingError, match="do not fit"):
        Layout(m=float).overlay("m", v=Motion)


def test_reusing_a_name_as_a_temporary_in_turn_is_fine():
    def body(n, x, y, w):
        for k in loop(n):
            t = x[k] * 2.0
            y[k] = t
        for k in loop(n):
            t = x[k] * 3.0
            y[k] = y[k] + t

    kernel = Kernel("fine", body, {"n": INT, "x": ROBOTS, "y": ROBOTS, "w": WORK}, Target())
    x, y = np.arange(4.0).reshape(1, 4), np.zeros((1, 4))
    kernel(1, 1, n=4, x=x, y=y, w=1)
    np.testing.assert_array_equal(y, 5 * x)


def test_a_field_that_another_one_has_overwritten_is_not_read():
    layout = Layout(a=Vec3, b=float).overlay("a", c=float)

    def body(work, out):
        table = Table(work.memory, layout)
        row = table[1]
        row.a, row.b = Vec3(1.0, 2.0, 3.0), 4.0
        out[0] = row.a.x + row.b
        row.c = 5.0
        out[1] = table[1].c
        out[2] = row.a.y

    kernel = Kernel("shared", body, {"work": WORK, "out": ROBOTS}, Target("f64", 1, native=False))
    out = np.zeros((1, 3))
    with pytest.raises(StagingError, match="'a' is read, but 'c' was written over it"):
        kernel(1, 1, work=8, out=out)
    assert list(out[0]) == [5.0, 5.0, 0.0]
