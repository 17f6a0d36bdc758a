"""Reading training logs, drawing them, and the command line that does both."""

from __future__ import annotations

import builtins
import subprocess
import sys
from pathlib import Path

import pytest

from minidl.__main__ import main
from minidl.train.csv_log import COLUMNS, CSVProgressWriter
from minidl.train.plot import Point, plot_logs, read_log
from minidl.train.progress import ProgressPrinter

ROOT = Path(__file__).resolve().parent.parent
PNG = b"\x89PNG\r\n"


def train(writer, epochs=2, updates=4, metric=True):
    """Minibatches of 10 samples; the loss of the n-th update of the run is n, its metric n / 100."""
    for epoch in range(epochs):
        for i in range(updates):
            n = 1 + epoch * updates + i
            writer.update_training(10, 10.0 * n, n / 10 if metric else None)
        writer.write_training_summary()
        writer.update_test(10, 2.5 - epoch)
        writer.write_test_summary()
    return writer


def points(log_points):
    return [Point(p.samples, p.epochs, p.loss, None if p.metric is None else round(p.metric, 6)) for p in log_points]


EPOCHS = [Point(40, 1, 2.5, 0.025), Point(80, 2, 6.5, 0.065)]
TESTS = [Point(40, 1, None, 0.25), Point(80, 2, None, 0.15)]


def test_csv_log(tmp_path):
    path = tmp_path / "run.csv"
    train(CSVProgressWriter(path, freq=2)).write("lr", 0.1)
    log = read_log(path)
    assert points(log.minibatches) == [Point(20, 1, 1.5, 0.015), Point(40, 1, 3.5, 0.035), Point(60, 2, 5.5, 0.055),
                                       Point(80, 2, 7.5, 0.075)]
    assert points(log.epochs) == EPOCHS and points(log.tests) == TESTS


@pytest.mark.parametrize("is_pct", [True, False])
@pytest.mark.parametrize("tag, num_epochs", [("", None), ("Training [x]", 20)])
def test_text_log(tmp_path, is_pct, tag, num_epochs):
    path = tmp_path / "run.log"
    train(ProgressPrinter(freq=2, log_to_file=path, metric_is_pct=is_pct, tag=tag, num_epochs=num_epochs, test_freq=1))
    log = read_log(path)
    assert points(log.minibatches) == [Point(20, 0, 1.5, 0.015), Point(40, 0, 3.5, 0.035), Point(60, 1, 5.5, 0.055),
                                       Point(80, 1, 7.5, 0.075)]
    assert points(log.epochs) == EPOCHS and points(log.tests) == TESTS


@pytest.mark.parametrize("metric", [True, False])
def test_table_log(tmp_path, metric):
    path = tmp_path / "run.log"
    printer = ProgressPrinter(freq=0, log_to_file=path, test_freq=0)
    printer.log("a message\n 12 of them")
    train(printer, metric=metric)
    log = read_log(path)
    assert points(log.minibatches) == [Point(samples, epochs, loss, loss / 100 if metric else None) for samples, epochs, loss in
                                       ((10, 0, 1.0), (30, 0, 2.5), (50, 1, 5.0), (70, 1, 6.5))]
    assert [p.samples for p in log.epochs] == [40, 80]


def test_table_log_of_epochs_without_summaries(tmp_path):
    path = tmp_path / "run.log"
    for _ in range(2):
        train(ProgressPrinter(freq=0, log_to_file=path), epochs=1)
    text = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in text if not line.startswith("Finished")))
    assert [p.samples for p in read_log(path).minibatches] == [10, 30, 40, 60]


def test_what_a_resumed_run_repeats_replaces_what_it_did_before(tmp_path):
    path = tmp_path / "run.csv"
    first = CSVProgressWriter(path, freq=1)
    first.update_training(10, 10.0)
    state = first.state_dict()
    first.update_training(10, 20.0)
    first.update_training(10, 30.0)
    second = CSVProgressWriter(path, freq=1)
    second.load_state_dict(state)
    second.update_training(10, 70.0)
    second.update_training(10, 80.0)
    assert [(p.samples, p.loss) for p in read_log(path).minibatches] == [(10, 1.0), (20, 2.0), (20, 7.0), (30, 8.0)]


TABLE = "\n".join(["    loss       last     metric       last              ", " " + "-" * 54])


@pytest.mark.parametrize("text, message", [
    ("", r"x\.log:0: expected a log of .*the file ends without"),
    ("nothing\nto see\n", r"x\.log:2: expected a log"),
    (",".join(COLUMNS) + "\n", r"x\.log:1: expected a log"),
    ("kind,epoch\n", r"x\.log:1: expected the columns kind,epoch,update,.*, got 'kind,epoch'"),
    (",".join(COLUMNS) + "\nepoch,1,2,30,0.5,,1.0,\nepoch,1,2\n", r"x\.log:3: expected a row of .*, got 'epoch,1,2'"),
    (",".join(COLUMNS) + "\nepoch,1,2,many,0.5,,1.0,\n", r"x\.log:2: expected a row of"),
    ("hello\n Minibatch[   1-  10]: loss = 0.69\n", r"x\.log:2: expected a line of ProgressPrinter, got ' Minibatch"),
    (" Minibatch[   1-  10]: loss = O.69 * 250;\n", r"x\.log:1: expected a line of ProgressPrinter"),
    ("Finished Epoch[1 of 20]: loss = 1.0 * 3\n", r"x\.log:1: expected a line of ProgressPrinter"),
    ("Finished Evaluation [1]: Minibatch[1-20]: metric = \n", r"x\.log:1: expected a line of ProgressPrinter"),
    (TABLE + "\n    0.693      0\n", r"x\.log:3: expected a line of ProgressPrinter"),
    (TABLE + "\n    0.693      0.1   0.2      12\n", r"x\.log:3: expected a line of ProgressPrinter"),
    (b"\xff\xfe\x00\n", r"x\.log:1: expected a log"),
])
def test_bad_logs(tmp_path, text, message):
    path = tmp_path / "x.log"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=message):
        read_log(path)


@pytest.fixture
def logs(tmp_path):
    train(CSVProgressWriter(tmp_path / "a.csv", freq=2))
    train(ProgressPrinter(freq=0, log_to_file=tmp_path / "b.log"), metric=False)
    return [tmp_path / "a.csv", tmp_path / "b.log"]


@pytest.fixture
def figures(monkeypatch):
    """The figures that are saved."""
    figure = pytest.importorskip("matplotlib.figure").Figure
    saved, real = [], figure.savefig
    monkeypatch.setattr(figure, "savefig", lambda self, *args, **kwargs: (saved.append(self), real(self, *args, **kwargs))[1])
    return saved


@pytest.mark.parametrize("by, title, x", [("samples", "training samples", [20, 40, 60, 80]), ("epochs", "epochs", [1, 2])])
@pytest.mark.parametrize("log_scale", [False, True])
def test_plot(tmp_path, logs, figures, by, title, x, log_scale):
    output = plot_logs(logs, tmp_path / "curves.png", by=by, log_scale=log_scale)
    assert output.read_bytes().startswith(PNG)
    loss, metric = figures[0].axes
    assert [loss.get_xlabel(), loss.get_ylabel()] == [title, "loss (mean per sample)"]
    assert [metric.get_xlabel(), metric.get_ylabel()] == [title, "metric (mean per sample)"]
    assert loss.get_yscale() == ("log" if log_scale else "linear")
    assert [t.get_text() for t in loss.get_legend().get_texts()] == [str(log) for log in logs]
    assert list(loss.lines[0].get_xdata()) == x
    assert len({line.get_color() for line in loss.lines}) == 2
    assert metric.lines[0].get_color() == loss.lines[0].get_color()
    assert [t.get_text() for t in metric.get_legend().get_texts()] == [
        str(logs[0]), f"{logs[0]} (test)", f"{logs[1]} (test)"]


def test_plot_of_the_loss_alone(tmp_path, figures):
    writer = CSVProgressWriter(tmp_path / "a.csv", freq=1)
    writer.update_training(10, 10.0)
    plot_logs([tmp_path / "a.csv"], tmp_path / "curves.svg")
    assert len(figures[0].axes) == 1
    assert "<svg" in (tmp_path / "curves.svg").read_text()
    with pytest.raises(ValueError, match=r"a\.csv: expected lines of finished epochs, found only minibatches"):
        plot_logs([tmp_path / "a.csv"], tmp_path / "curves.svg", by="epochs")


def test_plot_adds_the_suffix(tmp_path, logs, figures):
    assert plot_logs(logs, tmp_path / "curves") == tmp_path / "curves.png"
    assert (tmp_path / "curves.png").exists()


def test_plot_arguments(logs):
    with pytest.raises(ValueError, match='by="samples" or by="epochs", got \'steps\''):
        plot_logs(logs, "x.png", by="steps")
    with pytest.raises(ValueError, match="at least one log"):
        plot_logs([], "x.png")


def hide_matplotlib(monkeypatch):
    real = builtins.__import__

    def find(name, *args, **kwargs):
        if name.split(".")[0] == "matplotlib":
            raise ModuleNotFoundError("No module named 'matplotlib'")
        return real(name, *args, **kwargs)
    monkeypatch.setattr(builtins, "__import__", find)


def test_command_plots(tmp_path, logs, capsys):
    pytest.importorskip("matplotlib")
    output = tmp_path / "curves.png"
    assert main(["plot", *map(str, logs), "-o", str(output), "--log-scale", "--by", "epochs"]) == 0
    assert output.read_bytes().startswith(PNG)
    assert capsys.readouterr().out == f"wrote {output}\n"


def test_command_failures(tmp_path, logs, capsys, monkeypatch):
    (tmp_path / "empty.log").touch()
    for log, output, message in ((tmp_path / "none.log", "x.png", "none.log"), (tmp_path / "empty.log", "x.png", "empty.log:0"),
                                 (logs[0], "x.nonsense", "nonsense"), (logs[0], "none/x.png", "none")):
        assert main(["plot", str(log), "-o", str(tmp_path / output)]) == 1
        captured = capsys.readouterr()
        assert captured.err.startswith("minidl plot: ") and message in captured.err and not captured.out
    hide_matplotlib(monkeypatch)
    assert main(["plot", str(logs[0]), "-o", str(tmp_path / "x.png")]) == 1
    assert "pip install matplotlib" in capsys.readouterr().err
    assert not (tmp_path / "x.png").exists()


@pytest.mark.parametrize("arguments, code", [
    (["--help"], 0), (["plot", "--help"], 0), ([], 2), (["plot"], 2), (["draw"], 2), (["plot", "a", "--by", "days"], 2)])
def test_command_usage(arguments, code, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == code
    captured = capsys.readouterr()
    assert "usage: minidl" in (captured.err if code else captured.out)


def test_python_m_minidl():
    from minidl import __version__
    done = subprocess.run([sys.executable, "-m", "minidl", "--version"], capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stdout) == (0, f"minidl {__version__}\n")
