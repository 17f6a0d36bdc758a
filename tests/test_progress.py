"""Progress writers: CNTK's lines to the character, sample-weighted windows, schedules, files that survive a resume."""

from __future__ import annotations

import builtins
import csv
import io
import json
import sys

import pytest

import minidl
from minidl.train.bar import ProgressBar
from minidl.train.csv_log import COLUMNS, CSVProgressWriter
from minidl.train.progress import ProgressPrinter, ProgressWriter
from minidl.train.tensorboard import TensorBoardProgressWriter

HEADER = [" average      since    average      since      examples",
          "    loss       last     metric       last              ",
          " ------------------------------------------------------"]


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


class Recorder(ProgressWriter):
    """Keeps what it is told to output."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.seen = []

    def on_training_update(self, first_update, last_update, since_start, since_last):
        self.seen.append((first_update, last_update, since_start.loss, since_last.loss, since_last.metric))

    def on_test_update(self, first_update, last_update, since_start, since_last):
        self.seen.append(("test", first_update, last_update, since_start.metric, since_last.metric))

    def on_training_summary(self, epoch, totals, seconds):
        self.seen.append((epoch, totals.updates, totals.samples, totals.loss, totals.metric, seconds))


def lines(capsys):
    return capsys.readouterr().out.splitlines()


@pytest.fixture
def absent(monkeypatch):
    """Makes a package look as if it were not installed."""
    real = builtins.__import__

    def hide(package):
        for name in [n for n in sys.modules if n.split(".")[0] == package]:
            monkeypatch.delitem(sys.modules, name)

        def find(name, *args, **kwargs):
            if name.split(".")[0] == package:
                raise ModuleNotFoundError(f"No module named {package!r}")
            return real(name, *args, **kwargs)
        monkeypatch.setattr(builtins, "__import__", find)
    return hide


@pytest.mark.parametrize("freq, first, reported", [
    (None, 0, []),
    (None, 2, [(1, 1), (2, 2)]),
    (0, 0, [(1, 1), (2, 3), (4, 7), (8, 15)]),
    (0, 5, [(1, 1), (2, 3), (4, 7), (8, 15)]),
    (1, 0, [(i, i) for i in range(1, 16)]),
    (5, 0, [(1, 5), (6, 10), (11, 15)]),
    (5, 2, [(1, 1), (2, 2), (3, 5), (6, 10), (11, 15)]),
    (100, 0, []),
])
def test_schedule(freq, first, reported):
    for prefix, update in (("", lambda w: w.update_training(2, 1.0)), ("test_", lambda w: w.update_test(2, 1.0))):
        writer = Recorder(**{prefix + "freq": freq, prefix + "first": first})
        for _ in range(15):
            update(writer)
        assert [tuple(x for x in seen if x != "test")[:2] for seen in writer.seen] == reported


def test_averages_weigh_by_samples_and_the_window_starts_over():
    writer = Recorder(freq=2)
    for samples, loss, metric in ((1, 8.0, 1.0), (3, 4.0, 0.0), (2, 1.0, 2.0), (8, 1.0, 8.0)):
        writer.update_training(samples, loss, metric)
    assert writer.seen == [(1, 2, 3.0, 3.0, 0.25), (3, 4, 1.0, 0.2, 1.0)]


def test_a_bad_window_does_not_spoil_the_next_one():
    writer = Recorder(freq=1)
    writer.update_training(1, float("inf"))
    writer.update_training(1, 2.0)
    assert writer.seen[1][3] == 2.0


def test_summary_covers_the_epoch_and_starts_the_next():
    clock = Clock()
    writer = Recorder(freq=2, clock=clock)
    for _ in range(3):
        writer.update_training(4, 2.0)
    clock.now += 1.5
    writer.write_training_summary()
    writer.update_training(1, 7.0)
    clock.now += 2
    writer.write_training_summary()
    assert writer.seen[1:] == [(1, 3, 12, 0.5, None, 1.5), (2, 1, 1, 7.0, None, 2.0)]
    writer.update_training(1, 1.0)
    writer.update_training(1, 3.0)
    assert writer.seen[3] == (1, 2, 2.0, 2.0, None)
    assert (writer.training.total_updates, writer.training.total_samples) == (6, 15)


def test_an_update_without_samples_is_left_out():
    writer = Recorder(freq=1)
    writer.update_training(0, 0.0)
    assert writer.seen == [] and writer.training.total_updates == 0


def test_tensors_are_numbers():
    writer = Recorder(freq=1)
    writer.update_training(2, minidl.tensor(3.0), minidl.tensor(1))
    assert writer.seen == [(1, 1, 1.5, 1.5, 0.5)]


def test_state_continues_in_the_middle_of_an_epoch():
    clock = Clock()
    whole, first, second = (Recorder(freq=3, clock=clock) for _ in range(3))
    for i in range(8):
        whole.update_training(i + 1, 2.0 * i, 1.0 * i)
    for i in range(4):
        first.update_training(i + 1, 2.0 * i, 1.0 * i)
    clock.now += 3
    state = json.loads(json.dumps(first.state_dict()))
    clock.now += 1000
    second.load_state_dict(state)
    for i in range(4, 8):
        second.update_training(i + 1, 2.0 * i, 1.0 * i)
    assert first.seen + second.seen == whole.seen
    assert second.seconds == 3
    assert second.training.total_samples == 36


@pytest.mark.parametrize("make", [
    lambda **k: ProgressWriter(**k), lambda **k: ProgressPrinter(**k), lambda **k: CSVProgressWriter("x.csv", **k)])
@pytest.mark.parametrize("arguments, error, message", [
    ({"freq": -1}, ValueError, r"expected freq >= 0, got -1"),
    ({"first": -2}, ValueError, r"expected first >= 0, got -2"),
    ({"test_freq": -1}, ValueError, r"expected test_freq >= 0"),
    ({"test_first": -1}, ValueError, r"expected test_first >= 0"),
    ({"rank": -1}, ValueError, r"expected rank >= 0"),
    ({"freq": 2.0}, TypeError, r"an integer freq, got 2.0"),
    ({"freq": True}, TypeError, r"an integer freq, got True"),
    ({"rank": "0"}, TypeError, r"an integer rank, got '0'"),
])
def test_bad_arguments(make, arguments, error, message):
    with pytest.raises(error, match=message):
        make(**arguments)


@pytest.mark.parametrize("make, message", [
    (lambda: ProgressPrinter(distributed_freq=-1), "distributed_freq >= 0"),
    (lambda: ProgressPrinter(num_epochs=0), "num_epochs >= 1, got 0"),
    (lambda: ProgressBar(0), "epoch_size >= 1"),
    (lambda: ProgressBar(freq=-1), "ProgressBar expected freq >= 0"),
    (lambda: TensorBoardProgressWriter(freq=-1), "TensorBoardProgressWriter expected freq >= 0"),
    (lambda: ProgressWriter().update_training(-1, 0.0), "number of samples, got -1"),
])
def test_more_bad_arguments(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_metric_comes_always_or_never():
    writer = ProgressWriter()
    writer.update_training(1, 1.0, 1.0)
    with pytest.raises(ValueError, match="a metric in every update of an epoch or in none"):
        writer.update_training(1, 1.0)


def test_printer_arithmetic_lines(capsys):
    clock = Clock()
    printer = ProgressPrinter(freq=10, tag="Training", num_epochs=20, clock=clock)
    for _ in range(20):
        printer.update_training(25, 25 * 0.6931472, 12.6)
    clock.now += 1.232
    printer.write_training_summary()
    assert lines(capsys) == [
        " Minibatch[   1-  10]: loss = 0.693147 * 250, metric = 50.40% * 250;",
        " Minibatch[  11-  20]: loss = 0.693147 * 250, metric = 50.40% * 250;",
        "Finished Epoch[1 of 20]: [Training] loss = 0.693147 * 500, metric = 50.40% * 500 1.232s (405.8 samples/s);"]


def test_printer_epoch_line_of_the_specification(capsys):
    clock = Clock()
    printer = ProgressPrinter(tag="Training", num_epochs=20, clock=clock)
    printer.update_training(60416, 60416 * 0.77114, 60416 * 0.1984)
    clock.now += 1.232
    printer.write_training_summary()
    assert lines(capsys) == ["Finished Epoch[1 of 20]: [Training] loss = 0.771140 * 60416, metric = 19.84% * 60416 "
                             "1.232s (49039.0 samples/s);"]


@pytest.mark.parametrize("metric, is_pct, update, summary", [
    (None, True, "loss = 2.000000 * 4", "loss = 2.000000 * 4"),
    (1.0, False, "loss = 2.000000 * 4, metric = 0.250000 * 4", "loss = 2.000000 * 4, metric = 0.250000 * 4"),
    (1.0, True, "loss = 2.000000 * 4, metric = 25.00% * 4", "loss = 2.000000 * 4, metric = 25.00% * 4"),
])
def test_printer_with_and_without_metric(capsys, metric, is_pct, update, summary):
    clock = Clock()
    printer = ProgressPrinter(freq=1, metric_is_pct=is_pct, clock=clock)
    printer.update_training(4, 8.0, metric)
    clock.now += 100
    printer.write_training_summary()
    assert lines(capsys) == [f" Minibatch[   1-   1]: {update};",
                             f"Finished Epoch[1]: {summary} 100.000s (  0.0 samples/s);"]


def test_printer_table(capsys):
    printer = ProgressPrinter(freq=0)
    for loss in (2.0, 1.0, 0.5, 0.25):
        printer.update_training(25, 25 * loss, 5)
    assert lines(capsys) == [*HEADER,
                             "        2          2        0.2        0.2            25",
                             "     1.17       0.75        0.2        0.2            75"]


def test_printer_table_without_metric(capsys):
    ProgressPrinter(freq=0).update_training(25, 50.0)
    assert lines(capsys)[3:] == [" {:8.3g}   {:8.3g}   {:8s}   {:8s}    {:10d}".format(2, 2, "", "", 25)]


def test_printer_table_of_a_test(capsys):
    ProgressPrinter(test_freq=0).update_test(25, 5.0)
    assert lines(capsys) == [" {:8s}   {:8s}   {:8.3g}   {:8.3g}    {:10d}".format("", "", 0.2, 0.2, 25)]


@pytest.mark.parametrize("is_pct, figure", [(True, "14.21%"), (False, "0.142100")])
def test_printer_test_lines(capsys, is_pct, figure):
    printer = ProgressPrinter(test_freq=15, metric_is_pct=is_pct)
    for _ in range(20):
        printer.update_test(250, 250 * 0.1421)
    printer.write_test_summary()
    assert lines(capsys) == [f" Evaluation Minibatch[   1-  15]: metric = {figure} * 3750;",
                             f"Finished Evaluation [1]: Minibatch[1-20]: metric = {figure} * 5000;"]


def test_printer_without_any_update(capsys):
    printer = ProgressPrinter(clock=Clock())
    printer.write_training_summary()
    printer.write_test_summary()
    assert lines(capsys) == ["Finished Epoch[1]: loss = 0.000000 * 0 0.000s (  0.0 samples/s);",
                             "Finished Evaluation [1]: Minibatch[1-0]: metric = 0.00% * 0;"]


def test_printer_wide_counts_and_bad_losses(capsys):
    printer = ProgressPrinter(freq=1, first=0)
    printer.training.load_state_dict({"summaries": 0, "total_updates": 0, "total_samples": 0,
                                      "since_start": [12344, 1, 0.0, None], "since_last": [0, 0, None, None]})
    printer.update_training(1, float("nan"))
    assert lines(capsys) == [" Minibatch[12345-12345]: loss = nan * 1;"]


def test_printer_values_messages_and_synchronizations(capsys):
    printer = ProgressPrinter(distributed_freq=2)
    printer.write("lr", 0.001)
    printer.log("hello")
    printer.update_distributed_sync(100)
    printer.update_distributed_sync(50)
    printer.close()
    assert lines(capsys) == ["lr: 0.001", "hello",
                             "Distributed training: #Syncs elapsed = 2, #Samples elapsed = 150"]


def test_printer_heartbeat(capsys):
    clock = Clock()
    printer = ProgressPrinter(gen_heartbeat=True, num_epochs=4, clock=clock)
    for step in (0, 5, 5, 5):
        clock.now += step
        printer.update_training(1, 1.0)
    printer.write_training_summary()
    clock.now += 5
    printer.update_training(1, 1.0)
    out = lines(capsys)
    assert out[:2] + out[3:] == ["PROGRESS: 0.00%", "PROGRESS: 0.00%", "PROGRESS: 25.00%"]


def test_printer_prints_on_rank_0_only(capsys):
    for rank in (0, 1, 2):
        ProgressPrinter(rank=rank, freq=0, gen_heartbeat=True).update_training(1, 1.0 + rank)
    out = lines(capsys)
    assert out[:3] == HEADER and len(out) == 5


@pytest.mark.parametrize("rank, name", [(None, "run.log"), (0, "run.logrank0"), (3, "run.logrank3")])
def test_printer_to_file(tmp_path, capsys, rank, name):
    for _ in range(2):
        printer = ProgressPrinter(freq=1, log_to_file=tmp_path / "run.log", rank=rank)
        printer.update_training(2, 3.0)
        printer.log("é")
    assert lines(capsys) == []
    assert [p.name for p in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text("utf-8") == " Minibatch[   1-   1]: loss = 1.500000 * 2;\né\n" * 2


def test_printer_to_a_bad_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="missing"):
        ProgressPrinter(log_to_file=tmp_path / "missing" / "run.log")


def csv_rows(path):
    with open(path, newline="") as file:
        return list(csv.reader(file))


def test_csv_rows(tmp_path):
    clock = Clock()
    path = tmp_path / "run.csv"
    writer = CSVProgressWriter(path, freq=2, test_freq=1, clock=clock)
    assert not path.exists()
    writer.update_training(4, 8.0, 1.0)
    writer.update_training(4, 4.0, 1.0)
    clock.now += 1.5
    assert csv_rows(path) == [list(COLUMNS), ["minibatch", "1", "2", "8", "1.5", "0.25", "0.000000", ""]]
    writer.write("lr", 0.1)
    writer.update_training(2, 3.0, 2.0)
    writer.write_training_summary()
    writer.update_test(10, 3.0)
    writer.write_test_summary()
    writer.update_training(2, 1.0, 2.0)
    writer.write("lr", 0.2)
    writer.close()
    assert csv_rows(path)[2:] == [
        ["lr", "1", "2", "8", "", "", "1.500000", "0.1"],
        ["epoch", "1", "3", "10", "1.5", "0.4", "1.500000", ""],
        ["test_minibatch", "1", "3", "10", "", "0.3", "1.500000", ""],
        ["test", "1", "3", "10", "", "0.3", "1.500000", ""],
        ["lr", "2", "4", "12", "", "", "1.500000", "0.2"]]


def test_csv_appends_after_a_resume(tmp_path):
    path = tmp_path / "run.csv"
    first = CSVProgressWriter(path, freq=1)
    first.update_training(4, 8.0)
    second = CSVProgressWriter(path, freq=1)
    second.load_state_dict(first.state_dict())
    second.update_training(4, 8.0)
    assert [row[:5] for row in csv_rows(path)] == [list(COLUMNS[:5]), ["minibatch", "1", "1", "4", "2.0"],
                                                   ["minibatch", "1", "2", "8", "2.0"]]


def test_csv_refuses_a_foreign_file(tmp_path):
    path = tmp_path / "precious.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"expected .*precious.csv to start with kind,epoch.*, got 'a,b'"):
        CSVProgressWriter(path, freq=1).update_training(1, 1.0)
    assert path.read_text() == "a,b\n1,2\n"


def test_csv_refuses_a_name_that_is_a_kind(tmp_path):
    with pytest.raises(ValueError, match="a name other than minibatch, epoch"):
        CSVProgressWriter(tmp_path / "x.csv").write("epoch", 1)


def test_csv_is_silent_on_other_ranks(tmp_path):
    writer = CSVProgressWriter(tmp_path / "x.csv", freq=1, rank=1)
    writer.update_training(1, 1.0)
    writer.write("lr", 1.0)
    assert not list(tmp_path.iterdir())


def scalars(folder):
    """{tag: [(step, value)]} of the event files of a folder, as TensorBoard loads them."""
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = accumulator.EventAccumulator(str(folder)).Reload()
    return {tag: [(e.step, pytest.approx(e.value)) for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def test_tensorboard_scalars(tmp_path):
    pytest.importorskip("tensorboard")
    writer = TensorBoardProgressWriter(freq=2, log_dir=tmp_path / "logs")
    for _ in range(2):
        writer.update_training(4, 8.0, 1.0)
        writer.update_training(4, 4.0, 1.0)
        writer.write("lr", 0.1)
        writer.update_training(2, 3.0, 2.0)
        writer.write_training_summary()
        writer.update_test(10, 3.0)
        writer.write_test_summary()
    writer.close()
    writer.close()
    assert scalars(tmp_path / "logs") == {
        "minibatch/avg_loss": [(2, 1.5), (5, 1.5)], "minibatch/avg_metric": [(2, 0.25), (5, 0.25)],
        "summary/avg_loss": [(1, 1.5), (2, 1.5)], "summary/avg_metric": [(1, 0.4), (2, 0.4)],
        "minibatch/test_avg_metric": [(3, 0.3), (6, 0.3)], "lr": [(2, 0.1), (5, 0.1)]}


def test_tensorboard_test_without_training_and_without_metric(tmp_path):
    pytest.importorskip("tensorboard")
    writer = TensorBoardProgressWriter(log_dir=tmp_path)
    writer.update_test(2, 1.0)
    writer.write_test_summary()
    writer.update_training(2, 1.0)
    writer.write_training_summary()
    assert scalars(tmp_path) == {"summary/test_avg_metric": [(1, 0.5)], "summary/avg_loss": [(1, 0.5)]}


def test_tensorboard_after_close(tmp_path):
    pytest.importorskip("tensorboard")
    writer = TensorBoardProgressWriter(log_dir=tmp_path)
    writer.close()
    for use in (lambda: writer.write_value("a", 1.0, 1), writer.flush, lambda: writer.write("a", 1.0)):
        with pytest.raises(RuntimeError, match=r"expected to be open, but close\(\) was called"):
            use()


def test_tensorboard_is_silent_on_other_ranks(tmp_path):
    writer = TensorBoardProgressWriter(freq=1, log_dir=tmp_path, rank=1)
    writer.update_training(1, 1.0)
    writer.write_training_summary()
    writer.write_test_summary()
    writer.close()
    assert not list(tmp_path.iterdir())


def test_tensorboard_shows_the_tree_of_modules(tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")

    class Net:
        def named_modules(self):
            return [("", self), ("body", object()), ("body.0", [1]), ("head", {})]
    TensorBoardProgressWriter(log_dir=tmp_path, model=Net()).close()
    graph = accumulator.EventAccumulator(str(tmp_path)).Reload().Graph()
    assert [(node.name, node.op) for node in graph.node] == [("Net/body/0", "list"), ("Net/head", "dict")]


def test_tensorboard_names_the_missing_package(tmp_path, absent):
    absent("tensorboard")
    with pytest.raises(ImportError, match=r"pip install 'minidl\[tensorboard\]'"):
        TensorBoardProgressWriter(log_dir=tmp_path)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def run_bar(bar):
    for _ in range(4):
        bar.update_training(5, 10.0, 1.0)
    bar.log("in between")
    bar.write_training_summary()
    bar.close()


def test_bar_on_a_terminal(monkeypatch):
    pytest.importorskip("tqdm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    bar = ProgressBar(20, num_epochs=2, clock=Clock())
    run_bar(bar)
    text = sys.stderr.getvalue()
    assert "Epoch 1:" in text and "in between\n" in text
    assert text.rstrip("\r\n").splitlines()[-1].endswith(
        "Finished Epoch[1 of 2]: loss = 2.000000 * 20, metric = 20.00% * 20 0.000s (  0.0 samples/s);")
    assert "Minibatch[" not in text


def test_bar_counts_samples(monkeypatch):
    pytest.importorskip("tqdm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    bar = ProgressBar()
    bar.update_training(5, 10.0, 1.0)
    bar.update_training(7, 2.0, 1.0)
    assert bar._bar.n == 12 and bar._bar.postfix == "loss = 1.000000 * 12, metric = 16.67% * 12"
    bar.close()


PLAIN = [" Minibatch[   1-   2]: loss = 2.000000 * 10, metric = 20.00% * 10;",
         " Minibatch[   3-   4]: loss = 2.000000 * 10, metric = 20.00% * 10;", "in between",
         "Finished Epoch[1]: loss = 2.000000 * 20, metric = 20.00% * 20 0.000s (  0.0 samples/s);"]


def test_bar_prints_lines_elsewhere(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    run_bar(ProgressBar(freq=2, clock=Clock()))
    assert sys.stderr.getvalue().splitlines() == PLAIN


def test_bar_prints_lines_without_tqdm(monkeypatch, absent):
    absent("tqdm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    run_bar(ProgressBar(freq=2, clock=Clock()))
    assert sys.stderr.getvalue().splitlines() == PLAIN


def test_bar_is_silent_on_other_ranks(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    run_bar(ProgressBar(freq=1, rank=2))
    assert sys.stderr.getvalue() == ""
