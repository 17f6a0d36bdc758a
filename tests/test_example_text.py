"""The examples that read text, the tagger, the translator and the masked language model, run and learn."""

import importlib
import random
import sys
from pathlib import Path

import numpy as np
import pytest

from minidl.data import Sequences

pytest.importorskip("matplotlib", reason="the examples draw with matplotlib")
EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
WORDS = ["BOS", "EOS", "from", "to", "boston", "denver", "new", "york"]
SLOTS = ["O", "B-from", "I-from", "B-to", "I-to"]


@pytest.fixture
def example(monkeypatch):
    """Loads an example by name."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield importlib.import_module
    for name in ("atis_tagging", "translation", "masked_lm"):
        sys.modules.pop(name, None)


@pytest.fixture
def flights(tmp_path):
    """A folder like ATIS, in which a city's slot depends on the word before it."""
    lot = random.Random(0)
    folder = tmp_path / "cntk"
    folder.mkdir()
    for name, count in ("train", 80), ("test", 20):
        sequences = enumerate([lot.sample(["from", "to"], lot.randint(1, 2)) for _ in range(count)])
        (folder / f"atis.{name}.ctf").write_text("".join(_lines(number, ways, lot) for number, ways in sequences))
    (folder / "query.wl").write_text("\n".join(WORDS) + "\n")
    (folder / "slots.wl").write_text("\n".join(SLOTS) + "\n")
    return tmp_path


def _lines(number, ways, lot):
    tokens = [("BOS", "O")]
    for way in ways:
        city = lot.choice((["boston"], ["denver"], ["new", "york"]))
        tokens += [(way, "O"), (city[0], f"B-{way}"), *((word, f"I-{way}") for word in city[1:])]
    return "".join(f"{number} |S0 {WORDS.index(word)}:1 |# {word} |S2 {SLOTS.index(slot)}:1\n"
                   for word, slot in [*tokens, ("EOS", "O")])


def test_atis_tagging_learns(example, flights, tmp_path, capsys):
    error = example("atis_tagging").main(
        ["--data", str(flights), "--epochs", "6", "--embedding", "16", "--hidden", "16", "--lr", "0.02", "--dropout", "0",
         "--batch-size", "8", "--seeds", "3", "4", "--output", str(tmp_path / "curves.png")])
    assert error < 0.1  # half of the cities, 18% of the tokens, would be wrong without the word before
    assert capsys.readouterr().out.count("tokens wrong, slot F1") == 2
    assert [len((tmp_path / f"atis-{seed}.csv").read_text().splitlines()) for seed in (3, 4)] == [7, 7]
    assert (tmp_path / "curves.png").stat().st_size > 1000


def test_atis_tagging_holds_out_a_part_of_the_training_file(example, flights):
    module = example("atis_tagging")
    sizes = []
    for options in [], ["--held-out", "15"]:
        training, test, words, slots = module.load(module.parse(["--data", str(flights), *options]))
        sizes.append((len(training.dataset), len(test.dataset)))
    assert sizes == [(80, 20), (65, 15)] and words == len(WORDS) and slots == SLOTS
    assert not set(training.dataset.indices) & set(test.dataset.indices)


def test_atis_tagging_fails_above_max_error(example, flights, tmp_path):
    with pytest.raises(SystemExit, match="above the 0% asked for"):
        example("atis_tagging").main(["--data", str(flights), "--epochs", "1", "--embedding", "4", "--hidden", "4",
                                      "--max-error", "0", "--output", str(tmp_path / "curves.png")])


@pytest.mark.parametrize("labels, spans", [
    ([0, 0], set()),
    ([1, 2, 2], {(0, 0, 3, "from")}),
    ([1, 1, 0], {(0, 0, 1, "from"), (0, 1, 2, "from")}),
    ([1, 4, 4], {(0, 0, 1, "from"), (0, 1, 3, "to")}),  # an I- of another slot begins one, as conlleval has it
    ([0, 2, 1], {(0, 1, 2, "from"), (0, 2, 3, "from")}),
])
def test_spans(example, labels, spans):
    assert example("atis_tagging").spans(Sequences.pad([np.array(labels)]), SLOTS) == spans


def test_spans_leave_padding_out(example):
    assert example("atis_tagging").spans(Sequences.pad([np.array([0, 3]), np.array([0, 0, 3, 4])], -100), SLOTS) == \
        {(0, 1, 2, "to"), (1, 2, 4, "to")}


@pytest.mark.parametrize("task", ["copy", "reverse"])
def test_translation_learns(example, tmp_path, capsys, task):
    exact = example("translation").main(
        ["--task", task, "--shortest", "1", "--longest", "2", "--layers", "1", "--heads", "2", "--width", "16",
         "--steps", "120", "--warmup", "10", "--batch-size", "32", "--lr", "0.01", "--test", "5", "--beams", "2",
         "--output", str(tmp_path / "curve.png")])
    last = (tmp_path / "curve.csv").read_text().splitlines()[-1].split(",")
    assert float(last[4]) < 1.2  # 1.9 without a look at the source: letters ln 16, and where the target ends
    printed = capsys.readouterr().out
    assert 0 <= exact <= 1 and "greedy: " in printed and "beam search with 2: " in printed and printed.count(" -> ") == 5
    assert (tmp_path / "curve.png").stat().st_size > 1000


def test_translation_fails_below_min_exact(example, tmp_path):
    with pytest.raises(SystemExit, match="below the 100% asked for"):
        example("translation").main(["--layers", "1", "--width", "8", "--steps", "1", "--test", "2", "--longest", "4",
                                     "--batch-size", "2", "--min-exact", "100", "--output", str(tmp_path / "curve.png")])


@pytest.fixture
def masked_lm(example, tmp_path):
    """Runs masked_lm at a tiny size on a text that repeats."""
    (tmp_path / "text.txt").write_text("One two 33 four ... five! " * 100, encoding="utf-8")
    module = example("masked_lm")

    def run(*options):
        return module.main(["--text", str(tmp_path / "text.txt"), "--layers", "1", "--heads", "2", "--width", "32", "--context",
                            "12", "--warmup", "10", "--batch-size", "16", "--lr", "0.01", "--output",
                            str(tmp_path / "curves.png"), *options])
    return run


def test_masked_lm_learns(masked_lm, tmp_path, capsys):
    accuracy = masked_lm("--level", "word", "--steps", "150")
    assert accuracy > 0.5  # the frequencies alone give 1 in 7
    printed = capsys.readouterr().out
    assert "700 words, a vocabulary of 9" in printed and "by frequency" in printed
    assert "masked  |" in printed and (tmp_path / "curves.png").stat().st_size > 1000


def test_masked_lm_reads_characters(masked_lm, capsys):
    assert 0 <= masked_lm("--steps", "3") <= 1
    printed = capsys.readouterr().out
    assert "2,599 chars, a vocabulary of 17" in printed and "truth   |four ... fiv" in printed


def test_masked_lm_fails_below_min_accuracy(masked_lm):
    with pytest.raises(SystemExit, match="below the 101% asked for"):
        masked_lm("--steps", "1", "--min-accuracy", "101")


@pytest.mark.parametrize("level, tokens", [
    ("word", ["it", "'", "s", "12", ".", "5", "»", "--", "x", "_", "y", "«", "größe", "=="]),
    ("char", list("It's 12.5 »--x_y« Größe ==")),
])
def test_masked_lm_splits_text(example, tmp_path, level, tokens):
    (tmp_path / "text.txt").write_text("It's 12.5 »--x_y«\n Größe ==\n", encoding="utf-8")
    module = example("masked_lm")
    assert module.load_tokens(module.parse(["--text", str(tmp_path / "text.txt"), "--level", level])) == tokens
