"""The examples that make text and images, and the one on graphs, run and do what they say."""

import importlib
import sys
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="the examples draw with matplotlib")
EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
TEXT = "the quick brown fox jumps over the lazy dog; " * 40
TINY = ["--layers", "1", "--heads", "2", "--width", "16", "--context", "16", "--batch-size", "4", "--warmup", "4", "--lr",
        "1e-2", "--sample", "20"]


@pytest.fixture
def example(monkeypatch):
    """Loads an example by name."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield importlib.import_module
    for name in ("char_gpt", "gan_digits", "karate_gnn"):
        sys.modules.pop(name, None)


@pytest.fixture
def gpt(example, tmp_path):
    """Runs char_gpt at a tiny size on a text that repeats; a dropout, so that randomness counts in each step."""
    (tmp_path / "text.txt").write_text(TEXT)
    module = example("char_gpt")

    def run(name, *options):
        return module.main([*TINY, "--text", str(tmp_path / "text.txt"), "--output", str(tmp_path / f"{name}.png"), *options])
    return run


def test_char_gpt_learns_and_writes(gpt, tmp_path, capsys):
    loss = gpt("run", "--steps", "60")
    assert loss < 2.7  # a uniform guess among the 28 characters has 3.3, their frequencies alone 3.0
    printed = capsys.readouterr().out
    assert f"validation loss {loss:.4f}" in printed and "28 different" in printed
    assert (tmp_path / "run.png").stat().st_size > 1000


def test_char_gpt_resumes_with_the_same_bits(gpt, tmp_path):
    options = ["--steps", "8", "--dropout", "0.1", "--save-every", "3"]
    whole = gpt("whole", *options, "--checkpoint", str(tmp_path / "whole.safetensors"))
    gpt("parts", *options, "--checkpoint", str(tmp_path / "parts.safetensors"), "--stop-after", "5")
    assert gpt("parts", *options, "--checkpoint", str(tmp_path / "parts.safetensors")) == whole
    logs = [(tmp_path / f"{name}.csv").read_text().splitlines() for name in ("whole", "parts")]
    one, other = ([line.split(",")[:6] for line in log] for log in logs)  # without the seconds
    assert one == other and len(one) == 9


def test_char_gpt_refuses_a_checkpoint_of_another_text(gpt, tmp_path):
    checkpoint = str(tmp_path / "run.safetensors")
    gpt("run", "--steps", "5", "--stop-after", "1", "--checkpoint", checkpoint)
    (tmp_path / "text.txt").write_text(TEXT.replace("q", "Q"))
    with pytest.raises(SystemExit, match="other characters"):
        gpt("run", "--steps", "5", "--checkpoint", checkpoint)


def test_char_gpt_fails_above_the_loss_asked_for(gpt):
    with pytest.raises(SystemExit, match="above the 0.1 asked for"):
        gpt("run", "--steps", "5", "--max-loss", "0.1")


def test_char_gpt_needs_no_data(example, monkeypatch, tmp_path):
    monkeypatch.delenv("MINIDL_DATA", raising=False)
    module = example("char_gpt")
    assert "assert_stmt" in module.load_text(module.parse([]))


@pytest.mark.parametrize("model, least", [("gcn", 0.9), ("sage", 0.8), ("gat", 0.8)])
def test_karate_gnn_separates_the_factions(example, tmp_path, model, least):
    pytest.importorskip("networkx", reason="the graph comes with networkx")
    picture = tmp_path / "club.png"
    assert example("karate_gnn").main(["--model", model, "--seeds", "1", "--steps", "60", "--output", str(picture)]) >= least
    assert picture.stat().st_size > 1000


def test_gan_digits_trains_and_draws(example, monkeypatch, tmp_path, capsys):
    pytest.importorskip("sklearn", reason="the images come with scikit-learn")
    picture, module = tmp_path / "digits.png", example("gan_digits")
    few = tuple(part[:512] for part in module.load())
    monkeypatch.setattr(module, "load", lambda: few)
    confidence = module.main(["--epochs", "1", "--width", "4", "--output", str(picture)])
    assert 0.1 < confidence < 1
    assert "generated" in capsys.readouterr().out and picture.stat().st_size > 1000
