"""Files of models: ONNX and TorchScript are taken, others come with the lines that wrap them."""

from typing import Any

import numpy as np
import pytest
import torch

from adaptive_vtt.errors import InputError
from adaptive_vtt.models.local.files import lines
from adaptive_vtt.models.local.python import TorchModel, model_of
from adaptive_vtt.utils.files import write_bytes
from adaptive_vtt.utils.image_codec import png
from tests.helpers.command_line import run

SIDE = 8


def network():
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * SIDE * SIDE, 2))


def estimator():
    linear = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(0)
    return linear.LogisticRegression().fit(rng.random((20, 3 * SIDE * SIDE)), [0, 1] * 10)


def images(folder):
    for name in ("cat", "dog"):
        for k in range(3):
            pixels = np.full((SIDE, SIDE, 3), 40 * k, np.uint8)
            write_bytes(folder / name / f"{name}{k}.png", png(pixels))
    return folder


def scripted(path):
    torch.jit.save(torch.jit.trace(network(), torch.zeros(1, 3, SIDE, SIDE)), str(path))


def whole(path):
    torch.save(network(), path)


@pytest.mark.parametrize(
    ("name", "make"),
    [pytest.param("net.pt", scripted, marks=pytest.mark.slow), ("net.pth", whole)],
)
def test_the_model_that_init_wraps_is_audited(name, make, tmp_path):
    make(tmp_path / name)
    data, spec = str(images(tmp_path / "data")), str(tmp_path / "spec" / "SPEC.toml")
    model = str(tmp_path / name)
    assert run("init", str(tmp_path / "spec"), "--data", data, "--model", model) == 0
    out = ["--budget", "2", "--out", str(tmp_path / "r"), "--set", "certify.self_taught=false"]
    if make is whole:  # a pickle is a program: run only once its user says so
        assert run("audit", spec, *out) == 2
        allowed = tmp_path / "spec" / "model.py"
        allowed.write_text(allowed.read_text().replace("weights_only=True", "weights_only=False"))
    assert run("audit", spec, *out) == 0


def test_onnx_is_named_in_the_spec(tmp_path):
    write_bytes(tmp_path / "net.onnx", b"-")
    data, spec = str(images(tmp_path / "data")), tmp_path / "spec"
    assert run("init", str(spec), "--data", data, "--model", str(tmp_path / "net.onnx")) == 0
    text = (spec / "SPEC.toml").read_text()
    assert 'kind = "onnx"' in text
    assert 'concepts = ["cat", "dog"]' in text
    assert not (spec / "model.py").exists()


def test_parameters_alone_need_their_network(tmp_path):
    torch.save(network().state_dict(), tmp_path / "net.pt")
    assert "YourNetwork()  # <- the class" in lines(tmp_path / "net.pt", "FILE", 2)
    with pytest.raises(InputError, match=r"wrap it yourself(?s:.*)weights_only=True"):
        model_of(str(tmp_path / "net.pt"))


def test_python_takes_a_traced_network_and_shows_how_to_wrap_an_estimator(tmp_path):
    scripted(tmp_path / "net.pt")
    assert isinstance(model_of(str(tmp_path / "net.pt")), TorchModel)
    with pytest.raises(InputError, match=r"got LogisticRegression; .* lambda images: estimator"):
        model_of(estimator())
    with pytest.raises(InputError, match=r"file '.*none\.pt' does not exist"):
        model_of(str(tmp_path / "none.pt"))


@pytest.mark.parametrize("concepts", [1, 2])  # 1: a cell spoilt the other column of labels
def test_a_forest_has_a_column_of_each_concept(concepts, tmp_path):
    joblib = pytest.importorskip("joblib")
    forests = pytest.importorskip("sklearn.ensemble").RandomForestClassifier(3, random_state=0)
    pixels = np.random.default_rng(0).random((20, 3 * SIDE * SIDE))
    joblib.dump(forests.fit(pixels, np.arange(40).reshape(20, 2) % 3 > 0), tmp_path / "net.joblib")
    made: dict[str, Any] = {}
    exec(lines(tmp_path / "net.joblib", repr(str(tmp_path / "net.joblib")), concepts), made)
    rows = made["predict"]([np.zeros((SIDE, SIDE, 3), np.uint8)] * 4)
    assert rows.shape == (4, 2)
    expected = [each[:, 1] for each in forests.predict_proba(np.zeros((4, pixels.shape[1])))]
    np.testing.assert_allclose(rows.T, expected)
