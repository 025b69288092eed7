"""Pendulums, cart-poles and chains."""

from __future__ import annotations

from ..arguments import checked
from ..build.builder import ModelBuilder
from ..errors import ModelError, is_whole
from ..model.model import Model
from .inertias import rod


@checked
def pendulum(n: int = 1, *, length: float = 1.0, mass: float = 1.0, damping: float = 0.0) -> Model:
    """Build n rods hanging from the world, hinged about y, each with a torque motor; q = 0 hangs straight down.

    Sites: `tip` at the end of the last rod.

    Args:
      n: Number of rods.
      length: Length of each rod, m.
      mass: Mass of each rod, kg.
      damping: Damping of each joint, N m s/rad.
    """
    _check_count(n)
    b = ModelBuilder(f"pendulum-{n}")
    _rods(b, n, "world", length, mass, damping, down=True)
    b.add_site("tip", f"rod{n}", position=(0.0, 0.0, -length))
    for i in range(1, n + 1):
        b.add_motor(f"rod{i}", f"rod{i}")
    return b.build()


@checked
def cartpole(n: int = 1, *, cart: float = 1.0, length: float = 1.0, mass: float = 0.1, damping: float = 0.0) -> Model:
    """Build a cart on a rail along x with n poles hinged about y; one motor pushes the cart. At q = 0 the poles are
    upright.

    Sites: `tip` at the end of the last pole. Keyframes: `hanging`.

    Args:
      n: Number of poles.
      cart: Mass of the cart, kg.
      length: Length of each pole, m.
      mass: Mass of each pole, kg.
      damping: Damping of all joints, N s/m and N m s/rad.
    """
    _check_count(n)
    b = ModelBuilder(f"cartpole-{n}")
    b.add_body("cart", joint="prismatic", joint_name="rail", axis=(1.0, 0.0, 0.0), mass=cart, damping=damping)
    _rods(b, n, "cart", length, mass, damping, down=False)
    b.add_site("tip", f"rod{n}", position=(0.0, 0.0, length))
    b.add_motor("push", "rail")
    b.add_keyframe("hanging", q=[0.0, 3.141592653589793] + [0.0] * (n - 1))
    return b.build()


@checked
def chain(n: int, *, length: float = 0.1, mass: float = 0.1, free: bool = False) -> Model:
    """Build n links hinged about x and y alternately, without motors; the first hangs from the world.

    Args:
      n: Number of links.
      length: Length of each link, m.
      mass: Mass of each link, kg.
      free: The first link is on a free joint.
    """
    _check_count(n)
    b = ModelBuilder(f"chain-{n}")
    for i in range(1, n + 1):
        b.add_body(
            f"link{i}",
            f"link{i - 1}" if i > 1 else "world",
            joint="free" if free and i == 1 else "revolute",
            axis=(1.0, 0.0, 0.0) if i % 2 else (0.0, 1.0, 0.0),
            position=(0.0, 0.0, -length) if i > 1 else (0.0, 0.0, 0.0),
            mass=mass,
            com=(0.0, 0.0, -length / 2),
            inertia=rod(mass, length, 0.1 * length),
        )
    b.add_site("tip", f"link{n}", position=(0.0, 0.0, -length))
    return b.build()


LINK = 0.5  # length of the links of `loaded_links`, m


@checked
def loaded_links(n: int, *, torque: float = 1.0) -> Model:
    """Build the chain of Qiao et al. (2021), figure 4, with the inertias of the paper's golf arm.

    n links of 0.5 m are horizontal along x at q = 0, with masses at their ends (1 kg for the first, 2.16 kg for the others)
    and a tip of 10 g. A positive angle raises a link. Sites: `tip`.

    Args:
      n: Number of links.
      torque: Torque of each motor per unit of control, N m.
    """
    _check_count(n)
    b = ModelBuilder(f"loaded-links-{n}", gravity=(0.0, 0.0, -9.8))
    end = (LINK, 0.0, 0.0)
    for i in range(1, n + 1):
        b.add_body(
            f"link{i}",
            f"link{i - 1}" if i > 1 else "world",
            joint="revolute",
            axis=(0.0, -1.0, 0.0),
            position=end if i > 1 else (0.0, 0.0, 0.0),
            mass=1.0 if i == 1 else 2.16,
            com=end,
            inertia=(0.00494875, 0.00494174, 0.002219) if i == 1 else (0.00539427, 0.0048979, 0.00311573),
        )
        b.add_motor(f"link{i}", f"link{i}", gear=torque)
    b.add_body("tip", f"link{n}", position=end, mass=0.01)
    b.add_site("tip", "tip")
    return b.build()


def _check_count(n: object) -> None:
    if not is_whole(n, 1):
        raise ModelError(f"the number of links is a whole number, at least 1, not {n!r}")


def _rods(b: ModelBuilder, n: int, base: str, length: float, mass: float, damping: float, *, down: bool) -> None:
    """Add n thin rods, hinged about y, each at the end of the one before."""
    z = -length if down else length
    for i in range(1, n + 1):
        b.add_body(
            f"rod{i}",
            f"rod{i - 1}" if i > 1 else base,
            joint="revolute",
            axis=(0.0, 1.0, 0.0),
            position=(0.0, 0.0, z if i > 1 else 0.0),
            mass=mass,
            com=(0.0, 0.0, z / 2),
            inertia=rod(mass, length, 0.02 * length),
            damping=damping,
        )
