import tomllib
from dataclasses import asdict

import pytest

from popcd.runs.configuration import Configuration, configuration, read_settings


def test_a_configuration_comes_back_from_its_file(tmp_path):
    config = Configuration('odd "name"\\\n.npz', 5, "pt", n_temperatures=7, learning_rate=0.25, centered=True, threshold=0.5)
    (tmp_path / "c.toml").write_text(config.to_toml())
    assert configuration(read_settings(tmp_path / "c.toml")) == config
    assert "n_chains" not in tomllib.loads(config.to_toml())


def test_files_may_use_whole_numbers_and_hyphens(tmp_path):
    (tmp_path / "c.toml").write_text('data = "letters"\nhidden = 8\nlearning-rate = 1\n')
    found = configuration(read_settings(tmp_path / "c.toml"))
    assert (found.learning_rate, type(found.learning_rate)) == (1.0, float)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"estimator": "magic"}, "estimator must be one of cd, pcd, pt, pop-cd, exact, got 'magic'"),
        ({"estimator": "cd", "proposal": "mixture"}, "the estimator cd has no setting proposal: it knows k"),
        ({"estimator": "exact", "k": 2}, "the estimator exact has no setting k: it knows no settings"),
        ({"proposal": "x"}, "proposal must be one of single, joint, mixture"),
        ({"normalizer": "x"}, "normalizer must be one of"),
        ({"schedule": "x"}, "schedule must be one of constant, linear, cosine"),
        ({"start": "x"}, "start must be one of data, uniform"),
        ({"hidden": 0}, "hidden must be a whole number of at least 1, got 0"),
        ({"iterations": "many"}, "iterations must be of kind int, got 'many'"),
        ({"hidden": True}, "hidden must be of kind int, got True"),
        ({"learning_rate": float("nan")}, "learning_rate must be a finite number of at least 0"),
        ({"data": None}, "data must be said"),
    ],
)
def test_bad_settings_are_named(settings, words):
    with pytest.raises(ValueError, match=words):
        configuration({"data": "letters", "hidden": 3} | settings)


def test_unknown_settings_and_broken_files_are_named(tmp_path):
    (tmp_path / "c.toml").write_text("hiden = 3\n")
    with pytest.raises(ValueError, match="unknown settings hiden: expected some of data, hidden"):
        read_settings(tmp_path / "c.toml")
    (tmp_path / "c.toml").write_text("hidden = = 3\n")
    with pytest.raises(ValueError, match="is not a TOML file"):
        read_settings(tmp_path / "c.toml")


def test_intervals_follow_the_length_of_the_run():
    config = Configuration("letters", 3, iterations=1000)
    assert (config.evaluation_interval, config.checkpoint_interval) == (50, 50)
    assert Configuration("letters", 3, iterations=5).evaluation_interval == 1
    assert asdict(config)["evaluate_every"] is None
