"""CNTK text format: what lines mean, every error with its place, sequences and class indices, CNTK's own files."""

import os
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minidl
from minidl.data import ctf_block
from minidl.data.ctf import CTFDeserializer, StreamDef, StreamDefs
from minidl.data.ctf_streams import Sequences
from minidl.data.loader import DataLoader

DATA = Path(os.environ.get("MINIDL_DATA", Path(__file__).resolve().parent.parent.parent / "shared" / "data")) / "cntk"
XY = {"x": StreamDef(shape=2), "y": StreamDef(shape=5, is_sparse=True)}


@pytest.fixture
def read(tmp_path):
    def read(text, streams=XY):
        path = tmp_path / "data.ctf"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return CTFDeserializer(path, streams)
    return read


def rows(data, stream=0):
    return [item[stream].tolist() for item in (data[i] for i in range(len(data)))]


# What lines mean

@pytest.mark.parametrize("text", [
    "|x 1 2\n|x 3 4\n",
    "|x 1 2\r\n|x 3 4\r\n",
    "\t |x\t1  2 \n |x 3\t4|z\n",
    "|x 1 2 |other a b |# comment\n|# comment |x 3 4\n",
    "|x 1 2 |# a |# pipe |#x 9 9\n|x 3 4|#\n",
    "|# a header\n\n|x 1 2\n   \n|x 3 4\n\n",
    "0 |x 1 2\n1 |x 3 4\n",
    "7|x 1 2\n7000000000000000000|x 3 4\n",
    "|x 1 2\n1 |x 3 4\n",
    "\ufeff|x 1 2\n|x 3 4\n",
    "|x +1 2.\n|x 3.0e0 .4e+1\n",
    "|xx 9 |X 8 |x 1 2\n|x 3 4 |x\u00e9 \u00e9\n",
])
def test_ways_to_write_two_samples(read, text):
    data = read(text, {"x": StreamDef(shape=2)})
    assert rows(data) == [[1, 2], [3, 4]]
    assert data[0][0].dtype == np.float32


@pytest.mark.parametrize("text, lengths", [
    ("|x 1 2\n|x 3 4\n|x 5 6\n", [1, 1, 1]),
    ("0 |x 1 2\n0 |x 3 4\n1 |x 5 6\n", [2, 1]),
    ("0 |x 1 2\n  |x 3 4\n  |x 5 6\n", [3]),
    ("5 |x 1 2\n|x 3 4\n5 |x 5 6\n", [3]),
    ("0 |x 1 2\n1 |x 3 4\n0 |x 5 6\n", [1, 1, 1]),
    ("0 |# begins\n|x 1 2\n1 |x 3 4\n|x 5 6\n", [1, 2]),
])
def test_lines_belong_to_sequences(read, text, lengths):
    data = read(text, {"x": StreamDef(shape=2, is_sequence=True)})
    assert data.lengths.tolist() == lengths
    assert np.concatenate([data[i][0] for i in range(len(data))]).tolist() == [[1, 2], [3, 4], [5, 6]]


def test_sparse_samples_become_dense_and_may_be_empty(read):
    data = read("|y 4:1.5 0:-2\n|y\n|y 2:0\n", {"y": StreamDef(shape=5, is_sparse=True)})
    assert rows(data) == [[-2, 0, 0, 0, 1.5], [0] * 5, [0] * 5]


def test_axes_are_filled_in_row_major_order(read):
    streams = {"x": StreamDef(shape=(2, 3)), "y": StreamDef(shape=(2, 2), is_sparse=True)}
    x, y = read("|x 0 1 2 3 4 5 |y 2:7\n", streams)[0]
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]] and y.tolist() == [[0, 0], [7, 0]]


def test_a_stream_may_have_another_name_than_its_field_and_two_may_share_one(read):
    data = read("|x 0 1\n|x 1 0\n", StreamDefs(a=StreamDef("x", 2), b=StreamDef(field="x", shape=2, as_indices=True)))
    assert rows(data) == [[0, 1], [1, 0]] and rows(data, 1) == [1, 0]
    assert [info.name for info in data.stream_infos()] == ["a", "b"]


@pytest.mark.parametrize("token", ["0.1", "1e-46", "-3.4028235e38", "16777217", "123456789012345678901", "9223372036854775807",
                                   "0000012", "-0"])
def test_numbers_are_rounded_to_float32(read, token):
    value = read(f"|x {token} 1\n", {"x": StreamDef(shape=2)})[0][0][0]
    assert value == np.float32(float(token)) and np.signbit(value) == token.startswith("-")


def test_a_last_line_without_a_newline_is_read_with_a_warning(read):
    with pytest.warns(UserWarning, match="data.ctf ends without a newline"):
        assert rows(read("|x 1 2\n|x 3 4", {"x": StreamDef(shape=2)})) == [[1, 2], [3, 4]]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.tuples(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=3, max_size=3),
                                   st.dictionaries(st.integers(0, 6), st.integers(-9, 9))), min_size=1, max_size=4),
                min_size=1, max_size=8), st.integers(1, 200))
def test_what_was_written_is_read_whatever_the_block_size(tmp_path_factory, sequences, block):
    lines = [f"{i} |d {' '.join(map(repr, dense))} |s {' '.join(f'{k}:{v}' for k, v in sparse.items())}\n"
             for i, samples in enumerate(sequences) for dense, sparse in samples]
    path = tmp_path_factory.mktemp("ctf") / "data.ctf"
    path.write_text("".join(lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ctf_block, "BLOCK", block)
        data = CTFDeserializer(path, {"d": StreamDef(shape=3, is_sequence=True),
                                      "s": StreamDef(shape=7, is_sparse=True, is_sequence=True)})
    assert len(data) == len(sequences)
    for (dense, sparse), samples in zip((data[i] for i in range(len(data))), sequences):
        assert np.array_equal(dense, np.array([d for d, _ in samples], np.float32))
        assert sparse.tolist() == [[s.get(k, 0) for k in range(7)] for _, s in samples]


# Errors

@pytest.mark.parametrize("text, words", [
    ("|x 1 2 |y 0:1\n|x 1 a |y 0:1\n", r"line 2, column 6: expected a number, got 'a' \(stream 'x'\)"),
    ("|x 1 2-3 |y 0:1\n", "line 1, column 6: expected a number, got '2-3'"),
    ("|x 1-2 b |y 0:1\n", "line 1, column 4: expected a number, got '1-2'"),
    ("|x 1 nan |y 0:1\n", "column 6: expected a number, got 'nan'"),
    ("|x 1 inf |y 0:1\n", "got 'inf'"),
    ("|x 1 0x1 |y 0:1\n", "got '0x1'"),
    ("|x 1 1_0 |y 0:1\n", "got '1_0'"),
    ("|x 1 2: |y 0:1\n", "got '2:'"),
    ("|x 1 2\x003 |y 0:1\n", "expected a number"),
    ("|x 1 2\x0c3 |y 0:1\n", "expected a number"),
    ("|x 1 2\x0b |y 0:1\n", "expected a number"),
    ("|x 1 1e39 |y 0:1\n", "expected a number that float32 can hold, got '1e39'"),
    ("|x 1 |y 0:1\n", "line 1, column 3: expected 2 values of a sample, got 1"),
    ("|x 1 2 3 |y 0:1\n", "expected 2 values of a sample, got 3"),
    ("|x 1 |y 0:1\n|x 1 2 3 |y 0:1\n", "line 1, .*expected 2 values of a sample, got 1"),
    ("|x |y 0:1\n", "expected 2 values of a sample, got 0"),
    ("|x 0:1 1:2 |y 0:1\n", "column 4: expected a number, got '0:1'"),
    ("|x 1 2 |y 0:1\n|x 1 2 |y 0:1 5:1\n", r"line 2, column 15: expected an index below 5, got '5' \(stream 'y'\)"),
    ("|x 1 2 |y 99999999999999999999:1\n", "expected an index below 5"),
    ("|x 1 2 |y 3\n", "column 11: expected index:value, got '3'; is the stream dense"),
    ("|x 1 2 |y 3: 1:2\n", "expected a number, got ''"),
    ("|x 1 2 |y 3:\n", "expected a number, got ''"),
    ("|x 1 2 |y :3\n", "expected index:value, got ':3'"),
    ("|x 1 2 |y 3:1:2\n", "expected a number, got '1:2'"),
    ("|x 1 2 |y -1:2\n", "expected index:value, got '-1:2'"),
    ("|x 1 2 |y 1.0:2\n", "expected index:value, got '1.0:2'"),
    ("|x 1 2 |y 1:2x\n", "expected a number, got '2x'"),
    ("|x 1 2 |y 1:2 3:1e99\n", "float32 can hold, got '1e99'"),
    ("|x 1 2 |y 1:2 3:1 1:5\n", "expected each index once in a sample, got 1 twice"),
    ("|x 1 2 |y 1:2\n|x 1 2\n", r"line 2, column 1: expected at least one sample in the sequence.*got none \(stream 'y'\)"),
    ("3 |x 1 2 |y 1:2\n4 |x 1 2\n4 |x 1 2\n5 |y 1:2\n", r"line 4, column 1: .*got none \(stream 'x'\)"),
    ("|x 1 2 |y 1:2\n|other 1\n", "line 2, column 1: .*got none"),
    ("|x 1 2 |y 1:2 |x 3 4\n", "line 1, column 15: expected one |x in a line, got a second one"),
    ("|x 1 2 |y 1:2\nhello world\n", "line 2, column 1: .*a line without a pipe"),
    ("|x 1 2 |y 1:2\n3\n", "line 2, column 1: .*a line without a pipe"),
    ("3 4 |x 1 2 |y 1:2\n", "line 1, column 1: expected one sequence id before the first pipe, got '3 4 '"),
    ("3 |x 1 2 |y 1:2\nfour |x 1 2\n", r"line 2, column 1: expected a sequence id \(digits\) or a pipe, got 'four'"),
    ("0:1|x 1 2 |y 1:2\n", "expected a sequence id"),
    ("99999999999999999999 |x 1 2 |y 1:2\n", "sequence id that int64 can hold"),
    ("| x 1 2 |y 1:2\n", "line 1, column 1: expected a stream's name right after the pipe"),
    ("|x 1 2 |y 1:2 |\n", "line 1, column 15: expected a stream's name"),
    ("|x 1 2 |# \u00e9\u00e9 |y 1:a\n", "line 1, column 17: expected a number, got 'a'"),
    (b"|x 1 2 |y 1:2\n|x 1 2 |# \xff\n", "line 2, column 11: expected UTF-8 text, got byte 0xff"),
    ("|x 1 2 |y 1:2\n".encode("utf-16") + b"\n", "line 1, column 1: expected UTF-8 text"),
    ("", "line 1, column 1: expected lines such as .*got a file without any"),
    ("\n\n|# nothing\n", "got a file without any"),
])
def test_errors_name_the_place(read, text, words):
    with pytest.raises(ValueError, match="data.ctf, .*" + words.replace("|", r"\|")):
        read(text)


def test_an_error_in_a_later_block_has_the_line_of_the_file(read, monkeypatch):
    monkeypatch.setattr(ctf_block, "BLOCK", 20)
    with pytest.raises(ValueError, match=r"line 40, column 6: expected a number, got 'q' \(stream 'a', field \|x\)"):
        read("|x 1 2\n" * 39 + "|x 1 q\n|x 1 2\n", {"a": StreamDef("x", 2)})


@pytest.mark.filterwarnings("ignore:.*ends without a newline")
def test_a_file_cut_off_in_the_middle_of_a_sample_is_an_error(read):
    with pytest.raises(ValueError, match="line 2, .*expected 2 values of a sample, got 1"):
        read("|x 1 2 |y 0:1\n|x 1 2"[:-2], {"x": StreamDef(shape=2)})


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="found no file .*none.ctf"):
        CTFDeserializer(tmp_path / "none.ctf", XY)


@pytest.mark.parametrize("make, error, words", [
    (lambda: StreamDef(field="x"), ValueError, "positive integer or a tuple"),
    (lambda: StreamDef("x", 0), ValueError, "positive integer"),
    (lambda: StreamDef("x", (2, 1.5)), ValueError, "positive integer"),
    (lambda: StreamDef("x", 2, as_indices=True, padding_value=0.5), ValueError, "integer as padding_value"),
    (lambda: StreamDefs(), ValueError, "at least one"),
    (lambda: StreamDefs(x=3), TypeError, "a StreamDef for x"),
    (lambda: StreamDefs(x=StreamDef("a b", 2)), ValueError, "without blanks"),
    (lambda: StreamDefs(x=StreamDef("#a", 2)), ValueError, "leading #"),
    (lambda: StreamDefs(x=StreamDef("x", 2)).y, AttributeError, "no stream 'y'"),
])
def test_declarations_are_checked(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_declarations_are_reached_by_name():
    streams = StreamDefs(features=StreamDef(field="x", shape=2, is_sparse=False))
    assert streams.features is streams["features"] and list(streams) == ["features"]
    assert (streams.features.shape, streams.features.size) == ((2,), 2)


# Class indices

ONE_HOT = {"y": StreamDef(shape=3, as_indices=True)}
ONE_HOT_SPARSE = {"y": StreamDef(shape=3, is_sparse=True, as_indices=True)}


@pytest.mark.parametrize("text, streams", [("|y 0 0 1\n|y 1 0 0\n", ONE_HOT), ("|y 2:1\n|y 0:1 \n", ONE_HOT_SPARSE)])
def test_one_hot_samples_become_class_indices(read, text, streams):
    data = read(text, streams)
    (y,) = data.read(np.array([0, 1]))
    assert y.dtype == minidl.int64 and y.numpy().tolist() == [2, 0]
    assert data.stream_infos()[0].shape == ()


@pytest.mark.parametrize("text, streams, words", [
    ("|y 0 0 1\n|y 1 0 1\n", ONE_HOT, "line 2, column 3: expected a single 1, .*got 0:1, 2:1"),
    ("|y 0 0 0\n", ONE_HOT, "got nothing"),
    ("|y 0 0.5 0\n", ONE_HOT, "got 1:0.5"),
    ("|y 2:1\n|y\n", ONE_HOT_SPARSE, "line 2, column 3: .*got nothing"),
    ("|y 0:1 2:1\n", ONE_HOT_SPARSE, "got 0:1, 2:1"),
    ("|y 0:2\n", ONE_HOT_SPARSE, "got 0:2"),
    ("|y 0:0 1:1\n", ONE_HOT_SPARSE, "got 0:0, 1:1"),
])
def test_what_is_not_one_hot_has_no_class_index(read, text, streams, words):
    with pytest.raises(ValueError, match=words):
        read(text, streams)


# Sequences

SENTENCES = "0 |w 3:1 |c 1\n0 |w 1:1\n0 |w 0:1\n1 |w 2:1 |c 0\n"


def test_sequences_are_padded_and_masked(read):
    data = read(SENTENCES, {"w": StreamDef(shape=4, is_sparse=True, as_indices=True, padding_value=-100),
                            "c": StreamDef(shape=1)})
    w, c = data.read(np.array([1, 0]))
    assert w.data.numpy().tolist() == [[2, -100, -100], [3, 1, 0]]
    assert w.lengths.numpy().tolist() == [1, 3] and w.lengths.dtype == minidl.int64
    assert w.mask.numpy().tolist() == [[True, False, False], [True, True, True]]
    assert c.numpy().tolist() == [[0], [1]] and len(w) == 2
    assert [info.is_sequence for info in data.stream_infos()] == [True, False]


def test_sparse_sequences_are_padded_with_zeros(read):
    (w,) = read(SENTENCES, {"w": StreamDef(shape=4, is_sparse=True)}).read(np.array([0, 1]))
    assert w.data.numpy().tolist() == [[[0, 0, 0, 1], [0, 1, 0, 0], [1, 0, 0, 0]], [[0, 0, 1, 0], [0] * 4, [0] * 4]]


def test_no_sequences_have_no_steps(read):
    (w,) = read(SENTENCES, {"w": StreamDef(shape=4, is_sparse=True)}).read(np.array([], np.int64))
    assert w.data.shape == (0, 0, 4) and w.lengths.shape == (0,) and w.mask.shape == (0, 0)


def test_a_stream_declared_to_have_one_sample_a_sequence_may_not_have_more(read):
    with pytest.raises(ValueError, match=r"line 1, column 1: expected one sample in the sequence.*got 3 \(stream 'w'\)"):
        read(SENTENCES, {"w": StreamDef(shape=4, is_sparse=True, is_sequence=False)})


def test_arrays_of_different_lengths_are_padded():
    padded = Sequences.pad([np.ones((1, 2)), np.zeros((2, 2))], padding_value=9)
    assert padded.data.numpy().tolist() == [[[1, 1], [9, 9]], [[0, 0], [0, 0]]]
    with pytest.raises(ValueError, match="at least one array"):
        Sequences.pad([])


# As a data set

def test_collated_items_are_what_a_minibatch_has(read):
    data = read(SENTENCES, {"w": StreamDef(shape=4, is_sparse=True), "c": StreamDef(shape=1)})
    ours, theirs = data.collate([data[1], data[-2]]), data.read(np.array([1, 0]))
    assert np.array_equal(ours[0].data.numpy(), theirs[0].data.numpy())
    assert np.array_equal(ours[0].lengths.numpy(), theirs[0].lengths.numpy())
    assert np.array_equal(ours[1].numpy(), theirs[1].numpy())


def test_a_loader_batches_its_sequences(read):
    data = read(SENTENCES, {"w": StreamDef(shape=4, is_sparse=True, as_indices=True), "c": StreamDef(shape=1)})
    ((w, c),) = DataLoader(data, batch_size=2, collate_fn=data.collate)
    assert w.data.tolist() == [[3, 1, 0], [2, 0, 0]] and c.tolist() == [[1], [0]]


def test_a_loader_batches_single_samples_by_itself(read):
    data = read("|x 1 2 |y 0 1\n|x 3 4 |y 1 0\n", {"x": StreamDef(shape=2), "y": StreamDef(shape=2, as_indices=True)})
    ((x, y),) = DataLoader(data, batch_size=2)
    assert x.tolist() == [[1, 2], [3, 4]] and y.tolist() == [1, 0] and y.dtype == minidl.int64


@pytest.mark.parametrize("index", [2, -3])
def test_an_index_beyond_the_end_is_an_error(read, index):
    data = read(SENTENCES, {"c": StreamDef(shape=1)})
    with pytest.raises(IndexError, match="2 sequences"):
        data[index]


def test_it_can_be_sent_to_workers(read):
    data = pickle.loads(pickle.dumps(read(SENTENCES, StreamDefs(w=StreamDef(shape=4, is_sparse=True)))))
    assert data[0][0].shape == (3, 4) and data.streams.w.size == 4


# CNTK's own files

@pytest.fixture
def cntk():
    if not DATA.is_dir():
        pytest.skip(f"no {DATA}; set MINIDL_DATA to the folder of data sets")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield lambda name, **streams: CTFDeserializer(DATA / name, StreamDefs(**streams))


@pytest.mark.parametrize("name, sequences, words", [("atis.train.ctf", 4978, 66547), ("atis.test.ctf", 893, 10984)])
def test_atis(cntk, name, sequences, words):
    data = cntk(name, words=StreamDef("S0", 943, True, as_indices=True), intent=StreamDef("S1", 26, True, as_indices=True),
                slots=StreamDef("S2", 129, True, as_indices=True, padding_value=-100))
    assert (len(data), data.lengths.sum()) == (sequences, words)
    assert [info.is_sequence for info in data.stream_infos()] == [True, False, True]
    text = (DATA / name).read_text().splitlines()
    for stream, field in ((0, "|S0 "), (1, "|S1 "), (2, "|S2 ")):
        expected = [int(line.split(field)[1].split(":")[0]) for line in text if field in line]
        assert np.hstack([data[i][stream] for i in range(len(data))]).tolist() == expected


def test_simple2d(cntk):
    data = cntk("SimpleDataTrain_cntk_text.txt", features=StreamDef("F", 2), labels=StreamDef("L", 2, as_indices=True))
    x, y = data.read(np.arange(10_000))
    expected = np.array([line.split()[1:3] for line in (DATA / "SimpleDataTrain_cntk_text.txt").read_text().splitlines()])
    assert np.array_equal(x.numpy(), expected.astype(np.float32)) and y.shape == (10_000,)


def test_sequence_classification(cntk):
    data = cntk("Train.ctf", x=StreamDef("x", 2000, True), y=StreamDef("y", 5))
    x, y = data.read(np.arange(len(data)))
    assert len(data) == 1247 and x.lengths.numpy().sum() == 5433 == x.data.numpy().sum()
    assert y.shape == (1247, 5) and (y.numpy().sum(1) == 1).all()


def test_mnist(cntk):
    data = cntk("MNIST_dense.txt", x=StreamDef("F", (1, 28, 28)), y=StreamDef("L", 10, as_indices=True))
    x, y = data.read(np.arange(1000))
    assert x.shape == (1000, 1, 28, 28) and (x.numpy().min(), x.numpy().max()) == (0, 255) and y[0].item() == 7
