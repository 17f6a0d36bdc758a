"""Trains a small BERT to fill in masked characters (or words) of a text, and measures it on the text's last tenth.

The text is --text, or else what Python's own help says. The baseline guesses by how frequent each character is. For the first
third of the run the model does not do much better than that; then it learns where to look.
"""

from __future__ import annotations

import argparse
import re
import time
from pathlib import Path

import numpy as np

import minidl
import minidl.nn.functional as F
from minidl.data import TextWindows, WordVocabulary, read_text
from minidl.models import BERT, mask_tokens
from minidl.nn.utils import clip_grad_norm_
from minidl.optim import AdamW
from minidl.train import CSVProgressWriter, plot_logs

IGNORED = -100


def load_tokens(args: argparse.Namespace) -> list[str]:
    """Characters, white space as one blank; or words in lower case, numbers, and runs of one other character."""
    if args.text:
        content = read_text(args.text)
    else:
        from pydoc_data.topics import topics
        content = "\n".join(topics.values())
    if args.level == "char":
        return list(" ".join(content.split()))
    return [match.group() for match in re.finditer(r"[^\W\d_]+|\d+|(\S)\1*", content.lower())]


def masked(tokens: np.ndarray, vocabulary: WordVocabulary, generator: minidl.Generator | None = None) -> tuple:
    """Input and target: no padding and no unknown token is masked or put in, and the mask is one token more."""
    return mask_tokens(minidl.from_numpy(tokens), mask=len(vocabulary), vocabulary=len(vocabulary), special=2,
                       ignore_index=IGNORED, generator=generator)


def predict(model: BERT, input, target):
    """Logits and targets of the tokens that are to be predicted."""
    chosen = target != IGNORED
    return model.predict(model.encode(input)[chosen]), target[chosen]


def train(model: BERT, windows: TextWindows, vocabulary: WordVocabulary, log: Path, args: argparse.Namespace) -> None:
    """Train on windows anywhere in the text; the learning rate rises over the warm-up and then falls to zero."""
    optimizer = AdamW(model.parameters(), lr=args.lr, betas=(0.9, 0.98), weight_decay=args.decay)
    log.unlink(missing_ok=True)
    progress = CSVProgressWriter(log, freq=max(args.steps // 100, 1))
    start = time.perf_counter()
    for step in range(args.steps):
        optimizer.param_groups[0]["lr"] = args.lr * min((step + 1) / args.warmup,
                                                        (args.steps - step) / max(args.steps - args.warmup, 1))
        optimizer.zero_grad()
        tokens, _ = windows[minidl.randint(len(windows), (args.batch_size,)).numpy()]
        logits, hidden = predict(model, *masked(tokens, vocabulary))
        loss = F.cross_entropy(logits, hidden)
        loss.backward()
        clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        progress.update_training(len(hidden), loss.item() * len(hidden),
                                 (logits.argmax(-1) == hidden).sum().item())
        if (step + 1) % 200 == 0:
            print(f"step {step + 1:5d}: loss {loss.item():.3f}, {time.perf_counter() - start:.0f} s", flush=True)


def evaluate(model: BERT, windows: TextWindows, vocabulary: WordVocabulary, counts: np.ndarray) -> dict[str, tuple]:
    """(mean loss, accuracy) of the model and of guessing by frequency, on the same masked tokens."""
    unigram = minidl.from_numpy(np.log((counts + 1) / (counts + 1).sum()))
    masks, total, seen = minidl.Generator().manual_seed(0), np.zeros(4), 0
    model.eval()
    with minidl.no_grad():
        for i in range(0, len(windows), 64):
            logits, hidden = predict(model, *masked(windows[i:i + 64][0], vocabulary, masks))
            seen += len(hidden)
            total += [F.cross_entropy(logits, hidden, reduction="sum").item(), (logits.argmax(-1) == hidden).sum().item(),
                      -unigram[hidden].sum().item(), (hidden == unigram.argmax()).sum().item()]
    model.train()
    return {"BERT": tuple(total[:2] / seen), "by frequency": tuple(total[2:] / seen)}


def show(model: BERT, tokens: np.ndarray, vocabulary: WordVocabulary, level: str) -> None:
    """Print a text with its masks, what the model makes of it, and the text."""
    input, target = masked(tokens[None], vocabulary, minidl.Generator().manual_seed(1))
    chosen = target[0] != IGNORED
    model.eval()
    with minidl.no_grad():
        guesses = minidl.where(chosen, model(input)[0, :, :len(vocabulary)].argmax(-1), target.new_tensor(tokens))
    truth = vocabulary.decode(tokens)
    seen = ["_" if hidden else token for hidden, token in zip(chosen.tolist(), truth)]
    for name, line in ("masked", seen), ("guessed", vocabulary.decode(guesses)), ("truth", truth):
        print(f"{name:8s}|" + ("" if level == "char" else " ").join(line))


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", help="the file to learn, UTF-8 (default: Python's help)")
    parser.add_argument("--level", choices=("char", "word"), default="char", help="what is masked (default char)")
    parser.add_argument("--min-count", type=int, default=3, help="rarer characters or words are unknown (default 3)")
    parser.add_argument("--layers", type=int, default=2, help="Transformer blocks (default 2)")
    parser.add_argument("--heads", type=int, default=4, help="attention heads (default 4)")
    parser.add_argument("--width", type=int, default=64, help="features of a position (default 64)")
    parser.add_argument("--context", type=int, default=32, help="characters or words seen at once (default 32)")
    parser.add_argument("--dropout", type=float, default=0.0, help="probability (default 0)")
    parser.add_argument("--steps", type=int, default=2500, help="updates (default 2500)")
    parser.add_argument("--warmup", type=int, default=100, help="updates in which the learning rate rises (default 100)")
    parser.add_argument("--batch-size", type=int, default=32, help="windows an update (default 32)")
    parser.add_argument("--lr", type=float, default=3e-3, help="highest learning rate (default 3e-3)")
    parser.add_argument("--decay", type=float, default=0.01, help="weight decay (default 0.01)")
    parser.add_argument("--seed", type=int, default=0, help="of the parameters, the windows and their masks (default 0)")
    parser.add_argument("--min-accuracy", type=float, default=0.0, help="fail if BERT ends below this percentage")
    parser.add_argument("--output", default="masked_lm.png", help="where the curves go (default masked_lm.png)")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> float:
    args = parse(argv)
    tokens = load_tokens(args)
    known, held_out = tokens[:len(tokens) * 9 // 10], tokens[len(tokens) * 9 // 10:]
    vocabulary = WordVocabulary(known, min_count=args.min_count)
    training, test = vocabulary.encode(known), vocabulary.encode(held_out)
    minidl.manual_seed(args.seed)
    model = BERT(len(vocabulary) + 1, args.context, args.layers, args.heads, args.width, args.dropout)
    print(f"{len(tokens):,} {args.level}s, a vocabulary of {len(vocabulary):,}; "
          f"{sum(p.numel() for p in model.parameters()):,} parameters")
    log = Path(args.output).with_suffix(".csv")
    train(model, TextWindows(training, args.context, stride=1), vocabulary, log, args)
    results = evaluate(model, TextWindows(test, args.context), vocabulary, np.bincount(training, minlength=len(vocabulary)))
    for name, (loss, accuracy) in results.items():
        print(f"{name:12s}: loss {loss:.3f}, {100 * accuracy:.1f}% of the masks right")
    for begin in range(0, min(len(test) - args.context + 1, 3 * args.context), args.context):
        show(model, test[begin:begin + args.context], vocabulary, args.level)
    print(f"curves: {plot_logs([log], args.output)}")
    _, accuracy = results["BERT"]
    if 100 * accuracy < args.min_accuracy:
        raise SystemExit(f"{100 * accuracy:.1f}% of the masks right, below the {args.min_accuracy:g}% asked for")
    return accuracy


if __name__ == "__main__":
    main()
