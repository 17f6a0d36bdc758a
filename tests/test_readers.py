"""Readers of data sets: what they read, and that damaged, missing and malicious files give an error that names them."""

import csv
import gzip
import io
import os
import pickle
import struct
import tarfile
from pathlib import Path

import numpy as np
import pytest

import minidl
from minidl.data.cifar import CIFAR10, CIFAR100
from minidl.data.files import find_data, read_text
from minidl.data.image_folder import ImageFolder, read_image
from minidl.data.mnist import MNIST, read_idx
from minidl.data.safe_pickle import load_plain
from minidl.data.table import Table, read_csv, read_npz
from minidl.data.text import CharVocabulary, TextWindows, WordVocabulary
from minidl.data.transforms import ConvertImageDtype

RNG = np.random.default_rng(0)


def idx(array, code=0x08):
    array = np.asarray(array)
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, code, array.ndim, *array.shape) + array.tobytes()


# Finding data

def test_find_data_takes_the_folder_that_is_passed_before_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("MINIDL_DATA", str(tmp_path / "elsewhere"))
    (tmp_path / "mnist").mkdir()
    assert find_data("mnist", tmp_path) == tmp_path / "mnist"


def test_find_data_takes_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("MINIDL_DATA", str(tmp_path))
    (tmp_path / "mnist").mkdir()
    assert find_data("mnist") == tmp_path / "mnist"
    with pytest.raises(FileNotFoundError, match=rf"{tmp_path}/cifar .*MINIDL_DATA"):
        find_data("cifar")


def test_find_data_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.delenv("MINIDL_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match="MINIDL_DATA .* --data"):
        find_data("mnist")
    with pytest.raises(FileNotFoundError, match=rf"{tmp_path}/mnist .*--data"):
        find_data("mnist", tmp_path)
    assert find_data(tmp_path) == tmp_path


def test_read_text_unpacks_and_drops_the_byte_order_mark(tmp_path):
    (tmp_path / "a").write_bytes(gzip.compress("\ufeffgrün\r\n".encode(), mtime=0))
    assert read_text(tmp_path / "a") == "grün\r\n"
    (tmp_path / "b").write_bytes(b"gr\xfcn")
    with pytest.raises(ValueError, match="b is no UTF-8 text"):
        read_text(tmp_path / "b")


# MNIST

@pytest.mark.parametrize("code, dtype", [(0x08, ">u1"), (0x09, ">i1"), (0x0B, ">i2"), (0x0C, ">i4"), (0x0D, ">f4"),
                                         (0x0E, ">f8")])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_read_idx(tmp_path, code, dtype, pack):
    array = RNG.integers(-100, 100, (2, 3, 4)).astype(dtype)
    (tmp_path / "x").write_bytes(pack(idx(array, code)))
    read = read_idx(tmp_path / "x")
    assert read.dtype == np.dtype(dtype).newbyteorder("=") and np.array_equal(read, array)


GOOD = idx(np.zeros((2, 3), np.uint8))


@pytest.mark.parametrize("content, message", [
    (b"", "is empty"), (GOOD[:-1], "truncated.*18 bytes in all, got 17"), (GOOD + b"x", "too long"),
    (b"\0\0\x08", "no idx file"),
    (b"PNG!" + GOOD, "no idx file"), (b"\0\0\x07\x01" + GOOD, "no idx file"), (b"\0\0\x08\0", "no idx file"),
    (GOOD[:9], "header of 2 axes"),
    (b"\0\0\x08\x03" + b"\xff" * 12, "truncated"), (gzip.compress(GOOD, mtime=0)[:-9], "damaged or truncated gzip"),
    (b"\x1f\x8b", "damaged or truncated gzip"), (gzip.compress(b"", mtime=0), "is empty")])
def test_read_idx_refuses_damaged_files_by_name(tmp_path, content, message):
    (tmp_path / "broken-file").write_bytes(content)
    with pytest.raises(ValueError, match=f"broken-file.*{message}"):
        read_idx(tmp_path / "broken-file")


def test_read_idx_of_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing-here"):
        read_idx(tmp_path / "nothing-here")
    with pytest.raises(FileNotFoundError, match="a folder"):
        read_idx(tmp_path)


@pytest.fixture
def digits(tmp_path):
    """Four training and three test images, packed or not, in two of the usual places."""
    arrays = {"train": (RNG.integers(0, 256, (4, 5, 6), np.uint8), np.array([3, 1, 4, 1], np.uint8)),
              "t10k": (RNG.integers(0, 256, (3, 5, 6), np.uint8), np.array([0, 9, 5], np.uint8))}
    raw = tmp_path / "MNIST" / "raw"
    raw.mkdir(parents=True)
    (raw / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(arrays["train"][0]), mtime=0))
    (raw / "train-labels.idx1-ubyte").write_bytes(idx(arrays["train"][1]))
    (tmp_path / "t10k-images-idx3-ubyte").write_bytes(idx(arrays["t10k"][0]))
    (tmp_path / "t10k-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(arrays["t10k"][1]), mtime=0))
    return tmp_path, arrays


@pytest.mark.parametrize("train, key", [(True, "train"), (False, "t10k"),
                                        (("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"), "t10k")])
def test_mnist(digits, train, key):
    root, arrays = digits
    dataset = MNIST(root, train)
    assert len(dataset) == len(arrays[key][0])
    image, label = dataset[1]
    assert np.array_equal(image, arrays[key][0][1][None]) and image.dtype == np.uint8
    assert type(label) is int and label == arrays[key][1][1]


def test_mnist_gives_batches_through_its_transforms(digits):
    root, arrays = digits
    dataset = MNIST(root, True, ConvertImageDtype(), lambda y: y + 10)
    images, targets = dataset[np.array([3, 0])]
    assert images.shape == (2, 1, 5, 6) and images.dtype == np.float32
    assert np.array_equal(targets, [11, 13]) and targets.dtype == np.int64
    assert len(dataset[1:][1]) == 3


def test_mnist_goes_through_the_loader(digits):
    loader = minidl.data.DataLoader(MNIST(digits[0], True, ConvertImageDtype()), batch_size=3)
    (images, targets), _ = loader
    assert images.shape == (3, 1, 5, 6) and isinstance(targets, minidl.Tensor) and targets.dtype == minidl.int64


def test_mnist_says_which_files_it_misses(tmp_path):
    with pytest.raises(FileNotFoundError, match=f"{tmp_path}/t10k-images-idx3-ubyte, .*t10k-images-idx3-ubyte.gz"):
        MNIST(tmp_path, train=False)


@pytest.mark.parametrize("train", ["train", ("a", "b", "c")])
def test_mnist_refuses_other_choices_of_files(tmp_path, train):
    with pytest.raises(ValueError, match="two names of files"):
        MNIST(tmp_path, train)


@pytest.mark.parametrize("images, labels, message", [
    (np.zeros((2, 3), np.uint8), np.zeros(2, np.uint8), r"images: expected images uint8 \(N, H, W\)"),
    (np.zeros((2, 3, 3), np.uint8), np.zeros(3, np.uint8), r"labels: expected labels uint8 \(2,\)"),
    (np.zeros((2, 3, 3), np.uint8), np.zeros((2, 1), np.uint8), "labels")])
def test_mnist_refuses_images_and_labels_that_do_not_fit(tmp_path, images, labels, message):
    (tmp_path / "images").write_bytes(idx(images))
    (tmp_path / "labels").write_bytes(idx(labels))
    with pytest.raises(ValueError, match=message):
        MNIST(tmp_path, ("images", "labels"))


def test_the_real_test_images_of_mnist():
    root = Path(os.environ.get("MINIDL_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data") / "mnist"
    if not list(root.glob("t10k-images*")):
        pytest.skip("the MNIST files are not there; set MINIDL_DATA to the folder of data sets")
    dataset = MNIST(root, train=False)
    assert dataset.images.shape == (10000, 1, 28, 28)
    assert dataset.targets[:8].tolist() == [7, 2, 1, 0, 4, 1, 4, 9]
    assert dataset.images.mean() == pytest.approx(33.79, abs=0.01)


# CIFAR

def python_2_pickle(batch):
    """As Python 2 wrote the archive: str as bytes, arrays through numpy.core.multiarray, protocol 2."""
    return bytes(b"".join(_python_2(batch))).join([b"\x80\x02", b"."])


def _python_2(value):
    if isinstance(value, dict):
        yield b"}("
        for key, item in value.items():
            yield from _python_2(key)
            yield from _python_2(item)
        yield b"u"
    elif isinstance(value, list):
        yield b"](" + b"".join(b for item in value for b in _python_2(item)) + b"e"
    elif isinstance(value, int):
        yield b"J" + struct.pack("<i", value)
    elif isinstance(value, bytes):
        yield b"T" + struct.pack("<I", len(value)) + value
    else:
        rows, columns = value.shape
        yield b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\nK\x00\x85U\x01btR(K\x01"
        yield b"J" + struct.pack("<i", rows) + b"J" + struct.pack("<i", columns) + b"\x86"
        yield b"cnumpy\ndtype\n(U\x02u1K\x00K\x01tR(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89"
        yield b"T" + struct.pack("<I", value.nbytes) + value.tobytes() + b"tb"


def pickles(protocol):
    return lambda batch: pickle.dumps({key.decode(): value for key, value in batch.items()}, protocol)


PICKLERS = {"python 2": python_2_pickle, **{f"protocol {n}": pickles(n) for n in range(2, pickle.HIGHEST_PROTOCOL + 1)}}


def cifar10(dump=python_2_pickle, n=3):
    """(files of a Python archive by name, images, labels)"""
    images, labels = RNG.integers(0, 256, (6 * n, 3072), np.uint8), RNG.integers(0, 10, 6 * n).tolist()
    files = {"batches.meta": dump({b"label_names": [b"cat", b"dog"], b"num_cases_per_batch": n})}
    for at, name in enumerate([f"data_batch_{k}" for k in range(1, 6)] + ["test_batch"]):
        part = slice(at * n, at * n + n)
        files[name] = dump({b"batch_label": b"x", b"data": images[part], b"labels": labels[part]})
    return files, images.reshape(-1, 3, 32, 32), np.array(labels)


def write_archive(path, folder, files):
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"{folder}/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def write_folder(path, files):
    path.mkdir(parents=True)
    for name, content in files.items():
        (path / name).write_bytes(content)


@pytest.mark.parametrize("dump", PICKLERS.values(), ids=PICKLERS)
def test_cifar10_from_pickles(tmp_path, dump):
    files, images, labels = cifar10(dump)
    write_folder(tmp_path / "cifar-10-batches-py", files)
    train, test = CIFAR10(tmp_path), CIFAR10(tmp_path / "cifar-10-batches-py", train=False)
    assert np.array_equal(train.images, images[:15]) and np.array_equal(train.targets, labels[:15])
    assert np.array_equal(test.images, images[15:]) and np.array_equal(test.targets, labels[15:])
    assert test.classes == ["cat", "dog"]
    image, label = test[2]
    assert image.shape == (3, 32, 32) and image.dtype == np.uint8 and label == labels[17]


@pytest.mark.parametrize("place", ["", "cifar-10-python.tar.gz"])
def test_cifar10_from_the_archive(tmp_path, place):
    files, images, labels = cifar10()
    write_archive(tmp_path / "cifar-10-python.tar.gz", "cifar-10-batches-py", files)
    train = CIFAR10(tmp_path / place)
    assert np.array_equal(train.images, images[:15]) and np.array_equal(train.targets, labels[:15])
    assert train.classes == ["cat", "dog"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cifar-10-python.tar.gz"]


@pytest.mark.parametrize("packed", [False, True])
def test_cifar10_binary(tmp_path, packed):
    records = RNG.integers(0, 10, (6, 2, 3073)).astype(np.uint8)
    files = {"batches.meta.txt": b"cat\ndog\n\n", "test_batch.bin": records[5].tobytes(),
             **{f"data_batch_{k}.bin": records[k - 1].tobytes() for k in range(1, 6)}}
    if packed:
        write_archive(tmp_path / "cifar-10-binary.tar.gz", "cifar-10-batches-bin", files)
    else:
        write_folder(tmp_path / "cifar-10-batches-bin", files)
    train = CIFAR10(tmp_path)
    assert np.array_equal(train.targets, records[:5, :, 0].ravel())
    assert np.array_equal(train.images, records[:5, :, 1:].reshape(10, 3, 32, 32))
    assert train.classes == ["cat", "dog"]


@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("binary", [False, True])
def test_cifar100(tmp_path, coarse, binary):
    images = RNG.integers(0, 256, (4, 3072), np.uint8)
    fine, rough = [99, 0, 50, 7], [19, 0, 3, 4]
    if binary:
        records = np.concatenate([np.array([rough, fine], np.uint8).T, images], 1)
        write_folder(tmp_path / "cifar-100-binary", {"test.bin": records.tobytes(), "fine_label_names.txt": b"apple\nbee\n",
                                                     "coarse_label_names.txt": b"fruit\ninsects\n"})
    else:
        write_folder(tmp_path / "cifar-100-python", {
            "test": python_2_pickle({b"data": images, b"fine_labels": fine, b"coarse_labels": rough}),
            "meta": python_2_pickle({b"fine_label_names": [b"apple", b"bee"], b"coarse_label_names": [b"fruit", b"insects"]})})
    dataset = CIFAR100(tmp_path, train=False, coarse=coarse)
    assert dataset.targets.tolist() == (rough if coarse else fine)
    assert dataset.classes == (["fruit", "insects"] if coarse else ["apple", "bee"])
    assert np.array_equal(dataset.images, images.reshape(4, 3, 32, 32))


def test_cifar_says_where_it_looked(tmp_path):
    with pytest.raises(FileNotFoundError, match=f"CIFAR10 found no test_batch .*{tmp_path}/cifar-10-python.tar.gz"):
        CIFAR10(tmp_path, train=False)


def test_cifar_names_a_missing_batch(tmp_path):
    files, *_ = cifar10()
    del files["data_batch_4"]
    write_folder(tmp_path / "x", files)
    with pytest.raises(FileNotFoundError, match="data_batch_4"):
        CIFAR10(tmp_path / "x")


def test_a_truncated_archive(tmp_path):
    path = tmp_path / "cifar-10-python.tar.gz"
    write_archive(path, "x", cifar10(n=20)[0])
    path.write_bytes(path.read_bytes()[:-50000])
    with pytest.raises(ValueError, match="cifar-10-python.tar.gz is a damaged or truncated archive"):
        CIFAR10(path, train=False)


@pytest.mark.parametrize("content", [b"not an archive", b""])
def test_a_file_that_is_no_archive(tmp_path, content):
    (tmp_path / "x.tar.gz").write_bytes(content)
    with pytest.raises(ValueError, match="x.tar.gz is a damaged"):
        CIFAR10(tmp_path / "x.tar.gz")


@pytest.mark.parametrize("name, content, message", [
    ("test_batch.bin", bytes(3072), "multiple of 3073 bytes"), ("test_batch.bin", b"", "is empty"),
    ("test_batch.bin", b"\x0b" * 3073, r"labels in \[0, 10\), got some in \[11, 11\]"),
    ("test_batch", python_2_pickle([1, 2]), "expected a pickled dict, got a list"),
    ("test_batch", python_2_pickle({b"labels": [1]}), "images under 'data'"),
    ("test_batch", python_2_pickle({b"data": np.zeros((2, 3072), np.uint8), b"labels": [1]}), "2 integers under 'labels'"),
    ("test_batch", python_2_pickle({b"data": np.zeros((1, 3000), np.uint8), b"labels": [1]}), "3072"),
    ("test_batch", python_2_pickle({b"data": np.zeros((1, 3072), np.uint8), b"labels": [-1]}), "labels in"),
    ("test_batch", cifar10()[0]["test_batch"][:-200], "damaged pickle"), ("test_batch", b"garbage", "damaged pickle")])
def test_cifar_names_the_damaged_file(tmp_path, name, content, message):
    write_folder(tmp_path / "x", {name: content})
    with pytest.raises(ValueError, match=f"{name}.*{message}"):
        CIFAR10(tmp_path / "x", train=False)


# Pickles that ask for more than plain data

class Malicious:
    def __init__(self, path, call=os.mkdir):
        self.path, self.call = path, call

    def __reduce__(self):
        return self.call, (str(self.path),)


@pytest.mark.parametrize("packed", [False, True])
def test_a_malicious_archive_is_not_run(tmp_path, packed):
    trap = tmp_path / "trap"
    files = {"test_batch": pickle.dumps({"data": Malicious(trap), "labels": []}, 2)}
    if packed:
        write_archive(tmp_path / "cifar-10-python.tar.gz", "cifar-10-batches-py", files)
    else:
        write_folder(tmp_path / "cifar-10-batches-py", files)
    with pytest.raises(ValueError, match=r"test_batch is a pickle that asks for (posix|nt)\.mkdir"):
        CIFAR10(tmp_path, train=False)
    assert not trap.exists()


@pytest.mark.parametrize("name", ["builtins.eval", "os.system", "numpy.load", "numpy.core.multiarray.scalar",
                                  "numpy._core.numeric.load", "builtins.getattr", "numpy.dtype.__class__",
                                  "minidl.data.safe_pickle._Array"])
@pytest.mark.parametrize("protocol", [2, 4])
def test_no_other_name_is_looked_up(name, protocol):
    module, _, attribute = name.rpartition(".")
    if protocol == 2:
        content = b"\x80\x02c" + module.encode() + b"\n" + attribute.encode() + b"\n."
    else:
        names = (b"\x8c" + bytes([len(part)]) + part.encode() for part in (module, attribute))
        content = b"\x80\x04" + b"".join(names) + b"\x93."
    with pytest.raises(ValueError, match=f"file-name is a pickle that asks for {name}, .*nothing of it was run"):
        load_plain(content, "file-name")


@pytest.mark.parametrize("value", [np.array([object()]), np.array(["text"]), np.zeros(2, "i4,f4"), np.array([1j]), {1, 2}])
def test_pickled_arrays_hold_numbers_only(value):
    with pytest.raises(ValueError, match="file-name"):
        load_plain(pickle.dumps(value, 4), "file-name")


@pytest.mark.parametrize("dtype", ["u1", "<i2", ">i4", "i8", "<f2", ">f4", "f8", "?"])
@pytest.mark.parametrize("protocol", [2, 5])
@pytest.mark.parametrize("order", "CF")
def test_plain_arrays_are_read_as_they_were(dtype, protocol, order):
    array = np.array(RNG.integers(0, 2, (3, 4)), dtype, order=order)
    read = load_plain(pickle.dumps([{"a": array}, None, 1.5, "é", b"\xff", True, (1, 2)], protocol), "x")
    assert np.array_equal(read[0]["a"], array) and read[0]["a"].dtype == array.dtype.newbyteorder("=")
    assert read[1:] == [None, 1.5, "é", b"\xff", True, (1, 2)]


def test_an_array_of_fewer_bytes_than_its_shape_says():
    content = python_2_pickle({b"a": np.zeros((2, 3), np.uint8)}).replace(b"J\x02\0\0\0", b"J\x09\0\0\0")
    with pytest.raises(ValueError, match="x is a damaged pickle"):
        load_plain(content, "x")


def test_a_pickle_that_refers_to_itself_or_to_one_list_over_and_over():
    loop = []
    loop += [loop, loop]
    with pytest.raises(ValueError, match="nested deeper"):
        load_plain(pickle.dumps(loop), "x")
    bomb = []
    for _ in range(15):
        bomb = [bomb] * 50
    assert len(load_plain(pickle.dumps(bomb), "x")) == 50


# Tables

def write(path, text):
    path.write_text(text, newline="")
    return path


def test_read_csv_with_classes(tmp_path):
    path = write(tmp_path / "t.csv", 'a,kind,"b, c"\n1,dog,2.5\r\n\n-3e1, cat ,4\n5,dog,6\n')
    table = read_csv(path, "kind")
    assert table.features.tolist() == [[1, 2.5], [-30, 4], [5, 6]] and table.features.dtype == np.float32
    assert table.targets.tolist() == [1, 0, 1] and table.targets.dtype == np.int64
    assert table.classes == ["cat", "dog"] and table.feature_names == ["a", "b, c"]
    assert len(table) == 3 and table[1][1] == 0 and len(table[1:][0]) == 2


def test_read_csv_takes_the_order_of_classes(tmp_path):
    path = write(tmp_path / "t.csv", "1,dog\n2,7\n")
    table = read_csv(path, -1, header=False, classes=["7", "dog", "bird"])
    assert table.targets.tolist() == [1, 0] and table.classes == ["7", "dog", "bird"]


@pytest.mark.parametrize("text, dtype", [("1,4\n2,-5\n", np.int64), ("1,4\n2,0.5\n", np.float32)])
def test_read_csv_with_numbers_as_targets(tmp_path, text, dtype):
    table = read_csv(write(tmp_path / "t.csv", text), 1, header=False)
    assert table.targets.dtype == dtype and table.targets[0] == 4 and table.feature_names == ["0"]


def test_read_csv_without_target_and_with_chosen_columns(tmp_path):
    path = write(tmp_path / "t.tsv", "a\tb\tc\n1\tx\t3\n")
    table = read_csv(path, delimiter="\t", columns=["c", 0], dtype="float64")
    assert table[0].tolist() == [3, 1] and table.features.dtype == np.float64 and table.targets is None


def test_read_csv_fills_what_is_missing(tmp_path):
    table = read_csv(write(tmp_path / "t.csv", "a,b\n1,\n,2\n"), missing=float("nan"))
    assert np.array_equal(table.features, [[1, np.nan], [np.nan, 2]], equal_nan=True)


def test_read_csv_unpacks(tmp_path):
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"a\n1\n", mtime=0))
    assert read_csv(tmp_path / "t.csv.gz").features.tolist() == [[1]]


@pytest.mark.parametrize("text, options, message", [
    ("", {}, "is empty"), ("\n \n", {}, "no lines but blank"), ("a,b\n", {}, "no rows but its header"),
    ("a,b\n1,2\n3,x\n", {}, r"line 3, column 1 \('b'\): expected a number, got 'x'"),
    ('a,b\n1,"2\n"\n3,x\n', {}, "line 4, column 1"),
    ("a,b\n1,2\n3,\n", {}, "line 3, column 1 .* expected a number, got ''"),
    ("a,b\n1,2\n3\n", {}, "line 3: expected 2 fields, got 1"), ("a,b\n1,2,3\n", {}, "line 2: expected 2 fields, got 3"),
    ("a,b\n1,1e39\n", {}, "a number that float32 holds, got '1e39'"), ('a\n"x\n', {}, "line 2"),
    ("a,b\n1,2\n", {"target": "c"}, "no column 'c'"), ("a,b\n1,2\n", {"target": 2}, "no column 2"),
    ("a,a\n1,2\n", {"target": "a"}, "several columns 'a'"), ("a,b\n1,2\n", {"columns": ["z"]}, "no column 'z'"),
    ("a,b\n1,2\n3,\n", {"target": "b"}, "line 3, column 1 .* expected a target"),
    ("a,b\n1,2\n3,cat\n", {"target": "b"}, "line 3, column 1 .* expected a number, as on other lines"),
    ("a,b\n1,cow\n", {"target": "b", "classes": ["cat"]}, r"line 2, .* one of the classes \['cat'\], got 'cow'")])
def test_read_csv_names_file_line_and_column(tmp_path, text, options, message):
    with pytest.raises(ValueError, match=f"broken.csv.*{message}"):
        read_csv(write(tmp_path / "broken.csv", text), **options)


def test_read_csv_refuses_other_files_and_dtypes(tmp_path):
    with pytest.raises(FileNotFoundError, match="missing.csv"):
        read_csv(tmp_path / "missing.csv")
    with pytest.raises(TypeError, match="floating dtype"):
        read_csv(write(tmp_path / "t.csv", "a\n1\n"), dtype="int64")


def test_read_csv_agrees_with_the_writer(tmp_path):
    values = RNG.standard_normal((20, 3))
    with open(tmp_path / "t.csv", "w", newline="") as file:
        csv.writer(file).writerows(values.tolist())
    assert np.array_equal(read_csv(tmp_path / "t.csv", header=False, dtype="float64").features, values)


def test_a_table_refuses_targets_that_do_not_fit():
    with pytest.raises(ValueError, match="Table expected"):
        Table(np.zeros((2, 3)), np.zeros(3))


def test_read_npz(tmp_path):
    np.savez(tmp_path / "t.npz", x=np.arange(6).reshape(2, 3), y=np.array([1.5, 2]))
    arrays = read_npz(tmp_path / "t.npz")
    assert list(arrays) == ["x", "y"] and arrays["x"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert list(read_npz(tmp_path / "t.npz", ["y"])) == ["y"]
    with pytest.raises(ValueError, match="t.npz has no array 'z'; it has x, y"):
        read_npz(tmp_path / "t.npz", ["z"])


def test_read_npz_does_not_run_pickles(tmp_path):
    np.savez(tmp_path / "t.npz", x=np.array([Malicious(tmp_path / "trap")], object))
    with pytest.raises(ValueError, match="t.npz: the array 'x'.*pickle"):
        read_npz(tmp_path / "t.npz")
    assert not (tmp_path / "trap").exists()


def test_read_npz_refuses_damaged_files_by_name(tmp_path):
    np.savez(tmp_path / "t.npz", x=np.arange(1000))
    content = (tmp_path / "t.npz").read_bytes()
    for name, damaged in (("a", b""), ("b", b"text"), ("c", content[:500]), ("d", content[:300] + b"\0" * 40 + content[340:]),
                          ("e", pickle.dumps(1))):
        (tmp_path / name).write_bytes(damaged)
        with pytest.raises(ValueError, match=f"{tmp_path}/{name}"):
            read_npz(tmp_path / name)
    np.save(tmp_path / "f.npy", np.zeros(2))
    with pytest.raises(ValueError, match="single array"):
        read_npz(tmp_path / "f.npy")
    with pytest.raises(FileNotFoundError, match="missing"):
        read_npz(tmp_path / "missing")


# Text

def test_characters_there_and_back():
    text = "hello wörld 🙂\n\0"
    vocabulary = CharVocabulary(text)
    tokens = vocabulary.encode(text)
    assert len(vocabulary) == len(set(text)) and vocabulary.characters == "".join(sorted(set(text)))
    assert tokens.dtype == np.int64 and tokens.tolist() == [vocabulary.characters.index(c) for c in text]
    assert vocabulary.decode(tokens) == text
    assert vocabulary.decode(minidl.tensor(tokens)) == text and vocabulary.decode(tokens.tolist()) == text


def test_no_characters():
    vocabulary = CharVocabulary()
    assert len(vocabulary) == 0 and vocabulary.encode("").shape == (0,) and vocabulary.decode([]) == ""
    with pytest.raises(ValueError, match="does not know 'a'"):
        vocabulary.encode("a")


def test_an_unknown_character_is_named():
    with pytest.raises(ValueError, match="does not know 'z', character 2"):
        CharVocabulary("abc").encode("abzb")


@pytest.mark.parametrize("tokens", [[3], [-1], [0.5], np.zeros((1, 1), int)])
def test_decode_refuses_what_are_no_tokens(tokens):
    with pytest.raises(ValueError, match="decode expected"):
        CharVocabulary("abc").decode(tokens)
    with pytest.raises(ValueError, match="decode expected"):
        WordVocabulary("a").decode(tokens)


def test_vocabularies_are_restored():
    characters, words = CharVocabulary(), WordVocabulary()
    characters.load_state_dict(CharVocabulary("hello").state_dict())
    assert characters.decode(characters.encode("hell")) == "hell"
    state = WordVocabulary("b a b", unknown="?", padding=None).state_dict()
    words.load_state_dict(state)
    assert words.state_dict() == state and words.unknown_index == 0 and words.padding_index is None
    assert words.encode("a b c").tolist() == [2, 1, 0]


@pytest.mark.parametrize("vocabulary, state", [
    (CharVocabulary(), {}), (CharVocabulary(), {"characters": 3}), (WordVocabulary(), {"words": ["a"]}),
    (WordVocabulary(), {"words": ["a", "a"], "padding": None, "unknown": None}),
    (WordVocabulary(), {"words": ["a"], "padding": "b", "unknown": None})])
def test_vocabularies_refuse_other_states(vocabulary, state):
    with pytest.raises(ValueError, match="expected a state_dict"):
        vocabulary.load_state_dict(state)


def test_words_by_frequency():
    vocabulary = WordVocabulary("the cat the dog a cat the\nend", min_count=1)
    assert vocabulary.words == ["<pad>", "<unk>", "the", "cat", "a", "dog", "end"]
    assert (vocabulary.padding_index, vocabulary.unknown_index, len(vocabulary)) == (0, 1, 7)
    tokens = vocabulary.encode("the bird  a")
    assert tokens.tolist() == [2, 1, 4] and tokens.dtype == np.int64
    assert vocabulary.decode(tokens) == ["the", "<unk>", "a"]
    assert "cat" in vocabulary and "bird" not in vocabulary


def test_rare_words_are_left_out():
    assert WordVocabulary(["a", "b", "a", "<unk>"], min_count=2).words == ["<pad>", "<unk>", "a"]
    assert WordVocabulary("a b b", max_size=3).words == ["<pad>", "<unk>", "b"]


def test_without_an_unknown_word_one_is_an_error():
    with pytest.raises(ValueError, match="does not know 'b' and has no unknown word"):
        WordVocabulary("a", unknown=None).encode("a b")


@pytest.mark.parametrize("options, message", [({"unknown": "x", "padding": "x"}, "to differ"), ({"max_size": 1}, "at least 2")])
def test_word_vocabulary_refuses(options, message):
    with pytest.raises(ValueError, match=message):
        WordVocabulary("a", **options)


@pytest.mark.parametrize("n, length, stride, starts, left_over", [
    (10, 3, None, [0, 3, 6], 0), (11, 3, None, [0, 3, 6], 1), (10, 3, 1, [0, 1, 2, 3, 4, 5, 6], 0), (10, 3, 2, [0, 2, 4, 6], 0),
    (4, 3, 5, [0], 0), (10, 2, 5, [0, 5], 2)])
def test_windows(n, length, stride, starts, left_over):
    windows = TextWindows(np.arange(n) * 7, length, stride=stride)
    assert len(windows) == len(starts) and windows.left_over == left_over
    for at, start in enumerate(starts):
        x, y = windows[at]
        assert x.tolist() == [7 * (start + k) for k in range(length)]
        assert y.tolist() == [7 * (start + k + 1) for k in range(length)]
    with pytest.raises(IndexError):
        windows[len(starts)]


def test_windows_as_a_batch_are_copies():
    tokens = np.arange(20)
    x, y = TextWindows(minidl.tensor(tokens), 4)[np.array([2, 0])]
    assert x.tolist() == [[8, 9, 10, 11], [0, 1, 2, 3]] and y[0].tolist() == [9, 10, 11, 12]
    x[:] = 0
    assert y[0].tolist() == [9, 10, 11, 12] and tokens[8] == 8


@pytest.mark.parametrize("tokens, length, stride, message", [
    (np.arange(3), 3, None, "at least 4 tokens"), (np.arange(9), 0, None, "at least 1"), (np.arange(9), 2, 0, "at least 1"),
    (np.zeros(9), 2, None, "integer tokens"), (np.zeros((3, 3), int), 2, None, "integer tokens"),
    (np.zeros(0, int), 2, None, "got 0")])
def test_windows_refuse(tokens, length, stride, message):
    with pytest.raises(ValueError, match=message):
        TextWindows(tokens, length, stride=stride)


# Image folders

@pytest.fixture
def pictures(tmp_path):
    """Two classes of small pictures, one in a folder within, and what is no picture."""
    Image = pytest.importorskip("PIL.Image")
    arrays = {}
    for name in ("dog/b.png", "dog/a.PNG", "cat/more/c.bmp"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        arrays[name] = RNG.integers(0, 256, (3, 4, 3), np.uint8)
        Image.fromarray(arrays[name]).save(path)
    (tmp_path / "cat" / "notes.txt").write_text("not a picture")
    (tmp_path / "readme.png").write_text("not in a class")
    (tmp_path / ".hidden").mkdir()
    return tmp_path, arrays


def test_image_folder(pictures):
    root, arrays = pictures
    dataset = ImageFolder(root)
    assert dataset.classes == ["cat", "dog"] and dataset.class_to_idx == {"cat": 0, "dog": 1}
    assert dataset.targets == [0, 1, 1]
    for at, name in enumerate(("cat/more/c.bmp", "dog/a.PNG", "dog/b.png")):
        image, target = dataset[at]
        assert image.dtype == np.uint8 and np.array_equal(image, arrays[name].transpose(2, 0, 1))
        assert target == dataset.class_to_idx[name[:3]]


def test_image_folder_transforms(pictures):
    image, target = ImageFolder(pictures[0], ConvertImageDtype(), str)[0]
    assert image.dtype == np.float32 and target == "0"


def test_image_folder_with_a_loader_and_extensions(tmp_path):
    (tmp_path / "x").mkdir()
    np.save(tmp_path / "x" / "a.npy", np.arange(3))
    assert ImageFolder(tmp_path, loader=np.load, extensions=(".npy",))[0][0].tolist() == [0, 1, 2]


def test_a_damaged_picture_is_named(pictures):
    root, _ = pictures
    path = root / "dog" / "a.PNG"
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(ValueError, match="dog/a.PNG is no image that Pillow can read"):
        ImageFolder(root)[1]
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="dog/a.PNG"):
        read_image(path)
    with pytest.raises(FileNotFoundError, match="nothing.png"):
        read_image(root / "nothing.png")


@pytest.mark.parametrize("mode, channels", [("RGB", 3), ("L", 1), ("RGBA", 4)])
def test_read_image_converts(pictures, mode, channels):
    assert read_image(pictures[0] / "dog" / "b.png", mode).shape == (channels, 3, 4)


def test_read_image_refuses_other_modes(tmp_path):
    with pytest.raises(ValueError, match="'RGB', 'L' or 'RGBA', got 'CMYK'"):
        read_image(tmp_path / "x.png", "CMYK")


def test_folders_without_images(tmp_path):
    with pytest.raises(FileNotFoundError, match="expected a folder at"):
        ImageFolder(tmp_path / "nothing", loader=np.load)
    with pytest.raises(FileNotFoundError, match="a folder for each class"):
        ImageFolder(tmp_path, loader=np.load)
    (tmp_path / "lonely").mkdir()
    with pytest.raises(FileNotFoundError, match="no image in .*lonely"):
        ImageFolder(tmp_path, loader=np.load)
    assert len(ImageFolder(tmp_path, loader=np.load, allow_empty=True)) == 0


def test_without_pillow_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "PIL", None)
    with pytest.raises(ImportError, match="pip install pillow"):
        ImageFolder(tmp_path)
