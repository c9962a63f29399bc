from popcd.advice import Measured, advise


def measured(label, bias, variance=1.0, ess=1.0, error=0.0):
    word, _, k = label.rpartition("-")
    name, mixture, _ = word.partition(" mixture")
    return Measured(label, name, int(k), "mixture" if mixture else None, bias, error, variance, ess)


def first(*found, time=10.0, swaps=0.5):
    return advise(found, time, swaps, batch_size=100)[0]


def test_a_bias_lost_in_the_noise_speaks_for_cd():
    assert first(measured("cd-1", 0.005), measured("pop-cd-1", 1e-6)).startswith("Use cd-1")
    assert first(measured("cd-1", 0.5, error=0.3), measured("pop-cd-1", 1e-6)).startswith("Use cd-1")
    assert first(measured("cd-1", 0.5), measured("cd-10", 0.001)).startswith("Use cd-10")


def test_a_bias_that_matters_speaks_for_weights_where_enough_particles_carry_them():
    assert first(measured("cd-1", 0.5), measured("pop-cd-1", 0.1), measured("pop-cd mixture-1", 0.01)).startswith(
        "Use pop-cd mixture-1"
    )
    lines = advise([measured("cd-1", 0.5), measured("pop-cd-1", 0.01, variance=8.0)], 10, 0.5, 100)
    assert "8 times that of cd-1" in lines[1]
    lines = advise([measured("cd-1", 0.5), measured("pop-cd-1", 0.1)], 10, 0.5, 100)
    assert "larger batch or population than 100" in lines[-1]


def test_without_enough_particles_mixing_decides():
    found = [measured("cd-1", 0.5), measured("pop-cd-1", 0.01, ess=0.001)]
    few, pcd, _ = advise(found, 10, 0.5, 100)
    assert "too few particles here: an effective 0.1%" in few
    assert pcd.startswith("Use pcd: Gibbs chains forget in 10 sweeps")
    _, pt, more = advise(found, 500, 0.01, 100)
    assert pt.startswith("Use pt: Gibbs chains need 500 sweeps")
    assert "use more temperatures" in more


def test_nothing_measured_recommends_nothing():
    assert advise([], 10, 0.5, 100) == ["Nothing was measured, so nothing is recommended."]
