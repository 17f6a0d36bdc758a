"""The examples on images run from end to end: tiny settings, made-up files of MNIST and CIFAR-10, and the bundled digits."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="the examples draw their curves with matplotlib")
EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def load(name):
    """The module of an example."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write_mnist(folder, prefix, count):
    """Images whose class is the place of a bright row, as idx files."""
    folder.mkdir(parents=True, exist_ok=True)
    labels = (np.arange(count) % 10).astype(np.uint8)
    images = np.zeros((count, 28, 28), np.uint8)
    images[np.arange(count), 4 + 2 * labels] = 255
    for kind, array in (("images-idx3", images), ("labels-idx1", labels)):
        header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
        (folder / f"{prefix}-{kind}-ubyte").write_bytes(header + array.tobytes())


def write_cifar(folder, count):
    """Random images in the binary version of CIFAR-10."""
    folder.mkdir(parents=True)
    for name in [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]:
        records = np.random.RandomState(0).randint(0, 256, (count, 1 + 3072)).astype(np.uint8)
        records[:, 0] %= 10
        (folder / f"{name}.bin").write_bytes(records.tobytes())


def test_mnist_learns_from_the_test_files_alone(tmp_path, capsys):
    write_mnist(tmp_path / "mnist", "t10k", 250)
    picture = tmp_path / "curve.png"
    load("mnist").main(["--data", str(tmp_path), "--no-shift", "--epochs", "3", "--batch-size", "20", "--min-accuracy", "90",
                        "--output", str(picture)])
    assert "training on 200 of the 250 test images" in capsys.readouterr().out
    assert picture.stat().st_size > 1000


def test_mnist_trains_on_the_training_files_where_they_are(tmp_path, capsys):
    write_mnist(tmp_path / "mnist", "train", 60)
    write_mnist(tmp_path / "mnist", "t10k", 20)
    load("mnist").main(["--data", str(tmp_path), "--epochs", "2", "--output", str(tmp_path / "curve.png")])
    printed = capsys.readouterr().out
    assert "* 60" in printed and "Finished Evaluation [2]: Minibatch[1-1]" in printed and "* 20;" in printed


def test_mnist_says_when_it_misses_the_accuracy_asked_for(tmp_path):
    write_mnist(tmp_path / "mnist", "t10k", 50)
    with pytest.raises(SystemExit, match="below the 100% asked for"):
        load("mnist").main(["--data", str(tmp_path), "--epochs", "1", "--lr", "1e-9", "--min-accuracy", "100",
                            "--output", str(tmp_path / "curve.png")])


def test_mnist_shifts_training_images_only(tmp_path):
    write_mnist(tmp_path / "mnist", "t10k", 250)
    training, test = load("mnist").load(tmp_path / "mnist", 2)
    assert len({training[0][0].tobytes() for _ in range(20)}) > 5
    assert len({test[0][0].tobytes() for _ in range(20)}) == 1


def test_cifar_resnet_loss_falls_on_the_digits(tmp_path, monkeypatch, capsys):
    pytest.importorskip("sklearn", reason="the digits come with scikit-learn")
    monkeypatch.delenv("MINIDL_DATA", raising=False)
    picture = tmp_path / "curve.png"
    load("cifar_resnet").main(["--model", "densenet", "--depth", "10", "--limit", "96", "--epochs", "4", "--batch-size", "16",
                               "--lr", "0.2", "--output", str(picture)])
    printed = capsys.readouterr().out
    losses = [float(line.split("loss = ")[1].split()[0]) for line in printed.splitlines() if line.startswith("Finished Epoch")]
    assert len(losses) == 4 and losses[-1] < 0.9 * losses[0], losses
    assert "scikit-learn's digits" in printed and "multiply-adds" in printed and picture.stat().st_size > 1000


def test_cifar_resnet_reads_cifar10(tmp_path, capsys):
    pytest.importorskip("sklearn", reason="the example imports it")
    write_cifar(tmp_path / "cifar10" / "cifar-10-batches-bin", 4)
    load("cifar_resnet").main(["--model", "resnet20", "--data", str(tmp_path), "--epochs", "1", "--batch-size", "10",
                               "--output", str(tmp_path / "curve.png")])
    printed = capsys.readouterr().out
    assert "digits" not in printed and "* 20 " in printed and "* 4;" in printed


def test_cifar_resnet_does_not_fall_back_where_a_folder_is_named(tmp_path):
    pytest.importorskip("sklearn", reason="the example imports it")
    with pytest.raises(FileNotFoundError, match="cifar10"):
        load("cifar_resnet").main(["--data", str(tmp_path)])
