"""Tags the words of ATIS, spoken questions to an airline, with slots such as fromloc.city_name, by a bidirectional LSTM.

The data are CNTK's: cntk/atis.train.ctf and the lists of words and slots beside it. Settings are chosen with --held-out,
which measures on a part of the training file instead of on the test file.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import minidl
import minidl.nn.functional as F
from minidl.data import CTFDeserializer, DataLoader, Sequences, StreamDef, StreamDefs, find_data, random_split, read_text
from minidl.models import LSTMTagger
from minidl.optim import AdamW
from minidl.train import CSVProgressWriter, Trainer, plot_logs


def load(args: argparse.Namespace) -> tuple[DataLoader, DataLoader, int, list[str]]:
    """Batches for training and for the test, the number of words, and the names of the slots."""
    folder = find_data(args.folder, args.data)
    words, slots = (read_text(folder / f"{name}.wl").splitlines() for name in ("query", "slots"))
    streams = StreamDefs(words=StreamDef("S0", len(words), True, is_sequence=True, as_indices=True),
                         slots=StreamDef("S2", len(slots), True, is_sequence=True, as_indices=True, padding_value=-100))
    data = CTFDeserializer(folder / "atis.train.ctf", streams)
    if args.held_out:
        split = minidl.Generator().manual_seed(0)  # the same for each seed of the model
        parts: list = random_split(data, [len(data) - args.held_out, args.held_out], split)
    else:
        parts = [data, CTFDeserializer(folder / "atis.test.ctf", streams)]
    training, test = parts
    return (DataLoader(training, args.batch_size, shuffle=True, collate_fn=data.collate),
            DataLoader(test, 100, collate_fn=data.collate), len(words), slots)


def loss(output, target):
    """Mean cross-entropy of the tokens, and their number."""
    return F.cross_entropy(output.flatten(0, 1), target.flatten()), int((target != -100).sum())


def error(output, target):
    """The share of wrong slots, and the number of tokens."""
    tokens = target != -100
    return ((output.argmax(-1) != target) & tokens).sum() / tokens.sum(), int(tokens.sum())


def train(trainer: Trainer, batches: DataLoader, args: argparse.Namespace) -> None:
    """Train for some epochs, in which the learning rate falls to zero."""
    optimizer, = trainer.learners
    step, steps = 0, args.epochs * len(batches)
    for _ in range(args.epochs):
        for words, slots in batches:
            optimizer.param_groups[0]["lr"] = args.lr * (1 - step / steps)
            trainer.train_minibatch((words.data, words.lengths, slots.data))
            step += 1
        trainer.summarize_training_progress()


def evaluate(model: LSTMTagger, batches: DataLoader, names: list[str]) -> tuple[float, float, int]:
    """The share of wrong tokens, the F1 score of the slots, and the number of tokens."""
    found, true, wrong, tokens = set(), set(), 0, 0
    model.eval()
    with minidl.no_grad():
        for number, (words, slots) in enumerate(batches):
            guesses = Sequences(model(words.data, words.lengths).argmax(-1), words.lengths)
            wrong += int(((guesses.data != slots.data) & slots.mask).sum())
            tokens += int(slots.lengths.sum())
            found |= {(number, *span) for span in spans(guesses, names)}
            true |= {(number, *span) for span in spans(slots, names)}
    model.train()
    return wrong / tokens, 2 * len(found & true) / max(len(found) + len(true), 1), tokens


def spans(slots: Sequences, names: list[str]) -> set[tuple[int, int, int, str]]:
    """(sequence, first token, token after the last, slot): B-slot begins one, and each I-slot goes on with it."""
    found = set()
    for sequence, (labels, length) in enumerate(zip(slots.data.tolist(), slots.lengths.tolist())):
        tags, begin = [names[label] for label in labels[:length]] + ["O"], None
        for place, tag in enumerate(tags):
            if begin is not None and tag != "I-" + tags[begin][2:]:
                found.add((sequence, begin, place, tags[begin][2:]))
                begin = None
            if begin is None and tag != "O":
                begin = place
    return found


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="the folder of data sets (default: the environment variable MINIDL_DATA)")
    parser.add_argument("--folder", default="cntk", help="the folder of ATIS in it (default cntk)")
    parser.add_argument("--held-out", type=int, default=0, help="measure on so many sequences of the training file (default 0)")
    parser.add_argument("--epochs", type=int, default=12, help="passes over the training data (default 12)")
    parser.add_argument("--batch-size", type=int, default=16, help="sequences a step (default 16)")
    parser.add_argument("--lr", type=float, default=3e-3, help="learning rate at the start; it falls to zero (default 3e-3)")
    parser.add_argument("--decay", type=float, default=0.0, help="weight decay (default 0)")
    parser.add_argument("--embedding", type=int, default=100, help="features of a word (default 100)")
    parser.add_argument("--hidden", type=int, default=100, help="features of each direction (default 100)")
    parser.add_argument("--dropout", type=float, default=0.3, help="probability (default 0.3)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="a run for each (default 0)")
    parser.add_argument("--max-error", type=float, default=100.0, help="fail if a run ends above this percentage of tokens")
    parser.add_argument("--output", default="atis_tagging.png", help="where the curves go (default atis_tagging.png)")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> float:
    args = parse(argv)
    training, test, words, names = load(args)
    logs, errors = [], []
    for seed in args.seeds:
        minidl.manual_seed(seed)
        start = time.perf_counter()
        model = LSTMTagger(words, len(names), args.embedding, args.hidden, dropout=args.dropout)
        logs.append(Path(args.output).with_name(f"atis-{seed}.csv"))
        logs[-1].unlink(missing_ok=True)
        train(Trainer(model, (loss, error), AdamW(model.parameters(), lr=args.lr, weight_decay=args.decay),
                      CSVProgressWriter(logs[-1], freq=None)), training, args)
        wrong, f1, tokens = evaluate(model, test, names)
        errors.append(wrong)
        print(f"seed {seed}: {100 * wrong:.2f}% of {tokens:,} tokens wrong, slot F1 {100 * f1:.2f}, "
              f"{time.perf_counter() - start:.0f} s", flush=True)
    print(f"curves: {plot_logs(logs, args.output, by='epochs', log_scale=True)}")
    if 100 * max(errors) > args.max_error:
        raise SystemExit(f"{100 * max(errors):.2f}% of the tokens wrong, above the {args.max_error:g}% asked for")
    return max(errors)


if __name__ == "__main__":
    main()
