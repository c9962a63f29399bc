from popcd.advice import Measured, advise


def measured(label, bias, variance=1.0, ess=1.0, error=0.0):
    word, _, k = label.rpartition("-")
    name, mixture, _ = word.partition(" mixture")
    return Measured(label, name, int(k), "mixture" if mixture else None, bias, error, variance, ess)


def first(*found, time=10.0, swaps=0.5):
    return advise(found, time, swaps, batch_size=100)[0]


def test_a_bias_lost_in_the_noise_speaks_for_the_cheapest():
    assert first(measured("cd-1", 0.005), measured("pop-cd-1", 1e-6)).startswith("Use cd-1")
    assert first(measured("cd-1", 0.5), measured("cd-10", 0.001)).startswith("Use cd-10")


def test_few_repeats_do_not_speak_for_cd():
    """A bias of half the variance that is not resolved is not harmless; where all are alike, chains are advised."""
    assert first(measured("cd-1", 0.5, error=0.3), measured("pop-cd-1", 1e-6)).startswith("Use pop-cd-1")
    assert first(measured("cd-1", 0.5, error=0.3)).startswith("Use pcd")


def test_a_bias_that_matters_speaks_for_weights_where_enough_particles_carry_them():
    three = [measured("cd-1", 0.5), measured("pop-cd-1", 0.1), measured("pop-cd mixture-1", 0.02)]
    assert first(*three).startswith("Use pop-cd mixture-1")
    assert first(measured("cd-1", 0.5), measured("cd-10", 0.05), measured("pop-cd-1", 0.3)).startswith(
        "Use pcd: the bias of cd-10"
    )
    noise = [measured("cd-1", 0.5), measured("pop-cd-1", 0.03, error=0.01), measured("pop-cd-10", 0.02, error=0.01)]
    assert first(*noise).startswith("Use pop-cd-1:")
    _, rate, batch = advise([measured("cd-1", 0.5), measured("pop-cd-1", 0.1, variance=8.0)], 10, 0.5, 100)
    assert "8 times that of cd-1" in rate
    assert "more than 100 rows or particles" in batch


def test_without_enough_particles_mixing_decides():
    found = [measured("cd-1", 0.5), measured("pop-cd-1", 0.01, ess=0.001)]
    few, pcd, _ = advise(found, 10, 0.5, 100)
    assert "too few particles here: an effective 0.1%" in few
    assert pcd.startswith("Use pcd")
    assert "forget in 10 sweeps" in pcd
    _, pt, more, _ = advise(found, 500, 0.01, 100)
    assert pt.startswith("Use pt")
    assert "use more temperatures" in more


def test_nothing_measured_recommends_nothing():
    assert advise([], 10, 0.5, 100) == ["Nothing was measured, so nothing is recommended."]
