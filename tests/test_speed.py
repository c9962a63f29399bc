"""What makes updates fast, seen in the compiled program: counts, which no other work on the machine can change.

Products are counted in `estimators/test_conformance.py`; times are for `benchmarks/guard.py`.
"""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import popcd
from popcd.gradient import Offsets
from popcd.prng import host_keys
from popcd.updates import Gathered, Plan, advance, init

ESTIMATORS = {"cd": popcd.cd(), "pcd": popcd.pcd(), "pop-cd": popcd.pop_cd(), "mixture": popcd.pop_cd(proposal="mixture")}
BATCH = {784: 500, 16: 32}
FREE = {"get-tuple-element", "constant", "bitcast", "tuple", "parameter", "copy"}
XORS = 20  # rounds of a block of Threefry, one each

programs = pytest.mark.parametrize(
    ("name", "visible", "kernels"),
    [
        ("cd", 784, 23),
        ("cd", 16, 23),
        ("pcd", 784, 24),
        ("pcd", 16, 24),
        ("pop-cd", 784, 40),
        ("pop-cd", 16, 29),
    ],
)


@functools.cache
def program(name: str, visible: int) -> jax.stages.Compiled:
    """Training with 16 hidden units, optimised."""
    plan = Plan(ESTIMATORS[name], optax.sgd(0.1), BATCH[visible], centered=False)
    data = jnp.zeros((4 * plan.batch_size, visible), jnp.uint8)
    offsets = Offsets(data.mean(axis=0), np.zeros(16))
    state = init(jax.random.key(0), popcd.RBM.create(visible, 16), data[: plan.n_starts], offsets, plan)
    numbers = np.zeros(10 * plan.batch_size, np.int32)
    return advance.lower(state, 10, 0, Gathered(numbers, data), host_keys(0, "chain", np.arange(10)), plan).compile()


def computations(name: str, visible: int) -> dict[str, list[str]]:
    """The instructions of each computation of the program."""
    text = program(name, visible).as_text()
    found = re.findall(r"^(?:ENTRY )?%(\S+) \([^\n]*\{\n(.*?)^\}", text, re.DOTALL | re.MULTILINE)
    return {title: lines.splitlines() for title, lines in found}


def operation(line: str) -> str:
    return re.search(r"= (?:\(.*?\)|\S+) ([a-z][\w-]*)\(", line)[1]


def loop(name: str, visible: int) -> tuple[list[str], list[list[str]]]:
    """The instructions of an update, and those of all computations that it calls, its own among them."""
    found = computations(name, visible)
    [training] = [line for lines in found.values() for line in lines if operation(line) == "while"]
    body = re.search(r"body=%([\w.-]+)", training)[1]
    inside, new = set(), {body}
    while new:
        inside |= new
        called = (re.findall(r"(?:calls|to_apply)=%([\w.-]+)", line) for one in new for line in found[one])
        new = {one for names in called for one in names} - inside
    return found[body], [found[one] for one in inside]


@programs
def test_an_update_runs_no_more_kernels_than_it_did(name, visible, kernels):
    """Each costs a few tenths of a microsecond to start, which is most of what an update of a small machine costs."""
    body, _ = loop(name, visible)
    assert sum(operation(line) not in FREE for line in body) <= 1.1 * kernels


@programs
def test_states_are_drawn_once(name, visible, kernels):
    """One block for the hidden and one for the visible states; XLA would repeat them for every use. Keys come from the host."""
    _, inside = loop(name, visible)
    xors = [sum(operation(line) == "xor" for line in lines) for lines in inside]
    assert [count // XORS for count in xors if count >= XORS] == [1, 1]


@programs
def test_an_update_sorts_nothing_and_gathers_its_batch_only(name, visible, kernels):
    _, inside = loop(name, visible)
    found = [operation(line) for lines in inside for line in lines]
    assert found.count("gather") == 1
    assert not {"sort", "scatter", "while"} & set(found)


@programs
def test_an_update_holds_a_few_buffers_of_the_size_of_its_batch(name, visible, kernels):
    buffer = 4 * BATCH[visible] * (visible + 16)  # visible and hidden states in float32
    assert program(name, visible).memory_analysis().temp_size_in_bytes <= 7 * buffer


@pytest.mark.parametrize(("name", "pairs"), [("pop-cd", False), ("mixture", True)])
@pytest.mark.parametrize("visible", [784, 16])
def test_only_mixtures_meet_every_particle_with_every_other(name, visible, pairs):
    n = BATCH[visible]
    _, inside = loop(name, visible)
    assert any(re.search(rf"\b{n}(?:,1)?,{n}\b", line) for lines in inside for line in lines) == pairs


@pytest.mark.parametrize("name", ["cd", "pop-cd"])
def test_the_gradients_product_is_computed_in_the_fast_order(name):
    """Hidden units first where they are few, and never a product of columns: XLA turns either back where a barrier is gone."""
    products = {
        visible: [line for lines in loop(name, visible)[1] for line in lines if operation(line) == "dot"] for visible in BATCH
    }
    assert any("= f32[16,784]" in line for line in products[784])
    assert not any("lhs_contracting_dims={0}" in line for line in products[16])


def test_weights_of_particles_take_no_logarithm_per_visible_unit():
    _, inside = loop("pop-cd", 784)
    taken = [line for lines in inside for line in lines if operation(line).startswith("log")]
    assert any("[500,56]" in line for line in taken)
    assert not any("[500,784]" in line for line in taken)


@pytest.mark.parametrize("name", ["cd", "pop-cd"])
def test_draws_and_weights_share_the_exponentials_of_many_visible_units(name):
    """The logits of the draw are those of the softplus in the weights."""
    _, inside = loop(name, 784)
    taken = [line for lines in inside for line in lines if operation(line) == "exponential"]
    assert len([line for line in taken if ",784]" in line]) == 1


@pytest.mark.parametrize(("visible", "kept"), [(784, 1), (16, 0)])
def test_exponentials_that_could_be_shared_are_kept_where_they_are_many_only(visible, kept):
    """In a kernel of their own, which few are not worth."""
    _, inside = loop("pop-cd", visible)
    roots = [line for lines in inside for line in lines if line.lstrip().startswith("ROOT")]
    found = [line for line in roots if operation(line) == "exponential" and f"[{BATCH[visible]},{visible}]" in line]
    assert len(found) == kept
