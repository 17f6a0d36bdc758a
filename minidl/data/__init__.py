"""Second floor: data sets, samplers, the DataLoader, CNTK-like minibatch sources, readers and transforms."""

from importlib import import_module as _import_module
from typing import Any

from .balance import ClassBalancedSampler, DownSampler
from .collate import default_collate, default_convert
from .ctf import CTFDeserializer, StreamDef, StreamDefs
from .ctf_streams import Sequences, StreamInformation
from .dataset import (
    ChainDataset, ConcatDataset, Dataset, IterableDataset, StackDataset, Subset, TensorDataset, random_split,
)
from .distributed_sampler import DistributedSampler
from .erasing import Cutout, RandomErasing
from .files import find_data, read_text
from .image_folder import ImageFolder, read_image
from .labelled_images import LabelledImages
from .image_transforms import (
    CenterCrop, RandomCrop, RandomHorizontalFlip, RandomRotation, RandomShift, RandomVerticalFlip,
)
from .loader import DataLoader
from .mixing import cutmix, mixup
from .mnist import MNIST, read_idx
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, SubsetRandomSampler, WeightedRandomSampler
from .source import ArraySource, DatasetSource, Deserializer, Minibatch, MinibatchSource
from .table import Table, read_csv, read_npz
from .text import CharVocabulary, TextWindows, WordVocabulary
from .transforms import Compose, ConvertImageDtype, ImageTransform, Lambda, Normalize, ToTensor
from .whitening import PCAWhitening, ZCAWhitening
from .worker import WorkerInfo, get_worker_info


def __getattr__(name: str) -> Any:
    if name in ("CIFAR10", "CIFAR100"):  # their archives need tarfile, which is slow to load
        return getattr(_import_module(".cifar", __name__), name)
    raise AttributeError(f"module 'minidl.data' has no attribute {name!r}")
