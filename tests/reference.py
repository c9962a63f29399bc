"""An independent oracle in NumPy float64: every quantity by brute force over the joint table. Shares no code with popcd."""

import itertools

import numpy as np


def states(n):
    """All binary states, last unit fastest."""
    return np.array(list(itertools.product([0, 1], repeat=n)), float)


def index(rows):
    """The position of each row in `states`."""
    rows = np.asarray(rows)
    return (rows @ 2 ** np.arange(rows.shape[-1])[::-1]).astype(int)


def parameters(rbm):
    return tuple(np.asarray(x, np.float64) for x in (rbm.weights, rbm.visible_bias, rbm.hidden_bias))


def table(rbm):
    """Unnormalised joint probabilities, visible states x hidden states."""
    w, b, c = parameters(rbm)
    v, h = states(len(b)), states(len(c))
    out = np.empty((len(v), len(h)))
    for i, j in np.ndindex(out.shape):
        energy = 0.0
        for a in range(len(b)):
            energy -= b[a] * v[i, a]
            for k in range(len(c)):
                energy -= v[i, a] * w[a, k] * h[j, k]
        out[i, j] = np.exp(-energy + c @ h[j])
    return out


def log_z(rbm):
    return np.log(table(rbm).sum())


def p_visible(rbm):
    joint = table(rbm)
    return joint.sum(axis=1) / joint.sum()


def gibbs_matrix(rbm):
    """T[v, v'] of one block Gibbs sweep, from the joint table alone."""
    joint = table(rbm)
    hidden_given_visible = joint / joint.sum(axis=1, keepdims=True)
    visible_given_hidden = (joint / joint.sum(axis=0, keepdims=True)).T
    return hidden_given_visible @ visible_given_hidden


def statistics(rbm):
    """f(v) of every visible state: v E[h|v]', v and E[h|v], flattened and joined."""
    joint = table(rbm)
    v, h = states(joint.shape[0].bit_length() - 1), states(joint.shape[1].bit_length() - 1)
    mean_hidden = joint / joint.sum(axis=1, keepdims=True) @ h
    products = v[:, :, None] * mean_hidden[:, None, :]
    return np.concatenate([products.reshape(len(v), -1), v, mean_hidden], axis=1)


def expected_gradient(rbm, data, negative):
    """Gradient of the mean log-likelihood of `data` with the negative phase taken over `negative` (visible states)."""
    f = statistics(rbm)
    return f[index(data)].mean(axis=0) - negative @ f


def flat(gradient):
    """A popcd gradient in the order of `statistics`."""
    return np.concatenate([np.asarray(x, np.float64).ravel() for x in parameters(gradient)])
