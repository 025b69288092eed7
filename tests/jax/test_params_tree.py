"""Params as a pytree of named fields."""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import optax

import artigrad as ag
from artigrad.jax import step

jax.config.update("jax_enable_x64", True)
MODEL = ag.robots.cartpole()
SIM = ag.Simulator(MODEL)
STATE = tuple(jnp.asarray(x) + 0.1 for x in SIM.reset())
PARAMS = jax.tree.map(jnp.asarray, MODEL.params)


def speed(params):
    return jnp.square(step(SIM, STATE, params=params).v).sum()


def is_mass(path, _):
    return path[0].name == "mass"


def test_fields_are_leaves_in_their_order():
    np.testing.assert_array_equal(PARAMS.flat, MODEL.params.flat)
    np.testing.assert_array_equal(PARAMS.mass, MODEL.params.mass)
    assert isinstance(PARAMS, ag.Params) and "cartpole" in repr(PARAMS)
    assert "fields" in repr(jax.tree.map(lambda x: None, PARAMS)) + repr(jax.tree.map(lambda x: "any", PARAMS))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(PARAMS)).flat, MODEL.params.flat)


def test_the_gradient_has_the_fields_of_a_mapping():
    slope = jax.jit(jax.grad(speed))(PARAMS)
    by_name = jax.grad(lambda mass: speed({"mass": mass}))(PARAMS.mass)
    np.testing.assert_allclose(slope.mass, by_name, rtol=1e-12)
    assert np.abs(by_name).max() > 0


def test_vmap_over_one_field():
    masses = PARAMS.mass * jnp.array([[1.0], [1.5]])
    axes = jax.tree_util.tree_map_with_path(lambda *x: 0 if is_mass(*x) else None, PARAMS)
    many = jax.tree_util.tree_map_with_path(lambda path, x: masses if is_mass(path, x) else x, PARAMS)
    found = jax.vmap(speed, (axes,))(many)
    np.testing.assert_allclose(found, [speed({"mass": mass}) for mass in masses], rtol=1e-12)


def test_a_mask_of_optax_by_field():
    mask = jax.tree_util.tree_map_with_path(is_mass, PARAMS)
    labels = jax.tree.map(lambda own: "learned" if own else "fixed", mask)
    optimizer = optax.multi_transform({"learned": optax.sgd(0.1), "fixed": optax.set_to_zero()}, labels)
    slope = jax.grad(speed)(PARAMS)
    change, _ = optimizer.update(slope, optimizer.init(PARAMS))
    moved = optax.apply_updates(PARAMS, change)
    np.testing.assert_allclose(moved.mass, PARAMS.mass - 0.1 * slope.mass, rtol=1e-12)
    np.testing.assert_array_equal(moved.com, PARAMS.com)
