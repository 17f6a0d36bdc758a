"""Trains an encoder-decoder Transformer to write sequences backwards, and translates others by greedy and by beam search.

The data are made here: random letters as source, and the same letters reversed (or with --task copy as they are) as target.
"""

from __future__ import annotations

import argparse
import math
import random
import time
from pathlib import Path

import minidl
import minidl.nn.functional as F
from minidl.data import CharVocabulary, DataLoader, Sequences
from minidl.models import Seq2SeqTransformer
from minidl.nn.utils import clip_grad_norm_
from minidl.optim import Adam
from minidl.train import CSVProgressWriter, plot_logs

PADDING, BEGIN, END, SPECIAL = 0, 1, 2, 3
LETTERS = CharVocabulary("abcdefghijklmnop")


def make_pairs(count: int, args: argparse.Namespace, seed: int) -> list[tuple[str, str]]:
    """Pairs of a source and its target."""
    lot = random.Random(seed)
    sources = ["".join(lot.choices(LETTERS.characters, k=lot.randint(args.shortest, args.longest))) for _ in range(count)]
    return [(source, source[::-1] if args.task == "reverse" else source) for source in sources]


def encode(text: str) -> list[int]:
    """A text's tokens between begin and end."""
    return [BEGIN, *(LETTERS.encode(text) + SPECIAL).tolist(), END]


def decode(tokens: list[int]) -> str:
    """The text of tokens without begin and end; ? for what is no letter."""
    return "".join(LETTERS.characters[token - SPECIAL] if token >= SPECIAL else "?" for token in tokens)


def collate(pairs: list[tuple[str, str]]) -> list:
    """Padded sources and targets (N, T)."""
    return [Sequences.pad([encode(text) for text in texts], PADDING).data for texts in zip(*pairs)]


def learning_rate(step: int, args: argparse.Namespace) -> float:
    """A linear rise over the warm-up, then half a cosine down to zero."""
    if step < args.warmup:
        return args.lr * (step + 1) / args.warmup
    return args.lr * 0.5 * (1 + math.cos(math.pi * (step - args.warmup) / max(args.steps - args.warmup, 1)))


def train(model: Seq2SeqTransformer, pairs: DataLoader, log: Path, args: argparse.Namespace) -> None:
    """Teach the decoder the token that follows each of the target."""
    optimizer = Adam(model.parameters(), lr=args.lr, betas=(0.9, 0.98))
    log.unlink(missing_ok=True)
    progress = CSVProgressWriter(log, freq=max(args.steps // 100, 1))
    start, step = time.perf_counter(), 0
    while step < args.steps:
        for source, target in pairs:
            optimizer.param_groups[0]["lr"] = learning_rate(step, args)
            optimizer.zero_grad()
            logits = model(source, target[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=PADDING)
            loss.backward()
            clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            progress.update_training(len(source), loss.item() * len(source))
            step += 1
            if step % 100 == 0:
                print(f"step {step:5d}: loss {loss.item():.4f}, {time.perf_counter() - start:.0f} s", flush=True)
            if step == args.steps:
                break


def translate(model: Seq2SeqTransformer, pairs: list[tuple[str, str]], beams: int, args: argparse.Namespace) -> list[str]:
    """A translation of each source."""
    source, _ = collate(pairs)
    return [decode(tokens) for tokens in model.translate(source, args.longest + 5, beams=beams)]


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", choices=("reverse", "copy"), default="reverse", help="what to learn (default reverse)")
    parser.add_argument("--shortest", type=int, default=3, help="letters of the shortest source (default 3)")
    parser.add_argument("--longest", type=int, default=12, help="letters of the longest source (default 12)")
    parser.add_argument("--layers", type=int, default=2, help="of the encoder and of the decoder (default 2)")
    parser.add_argument("--heads", type=int, default=4, help="attention heads (default 4)")
    parser.add_argument("--width", type=int, default=64, help="features of a position (default 64)")
    parser.add_argument("--dropout", type=float, default=0.0, help="probability (default 0: no pair is seen twice)")
    parser.add_argument("--steps", type=int, default=600, help="updates (default 600)")
    parser.add_argument("--warmup", type=int, default=100, help="updates in which the learning rate rises (default 100)")
    parser.add_argument("--batch-size", type=int, default=64, help="pairs an update (default 64)")
    parser.add_argument("--lr", type=float, default=2e-3, help="highest learning rate; it falls to zero (default 2e-3)")
    parser.add_argument("--test", type=int, default=200, help="held-out pairs to translate (default 200)")
    parser.add_argument("--beams", type=int, default=4, help="candidates of beam search (default 4)")
    parser.add_argument("--seed", type=int, default=0, help="of the parameters and the pairs (default 0)")
    parser.add_argument("--min-exact", type=float, default=0.0, help="fail if a search gets a smaller percentage right")
    parser.add_argument("--output", default="translation.png", help="where the loss curve goes (default translation.png)")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> float:
    args = parse(argv)
    minidl.manual_seed(args.seed)
    test = make_pairs(args.test, args, 2 * args.seed)
    held_out = set(test)
    training = [pair for pair in make_pairs(args.steps * args.batch_size, args, 2 * args.seed + 1) if pair not in held_out]
    model = Seq2SeqTransformer(len(LETTERS) + SPECIAL, args.width, args.heads, args.layers, 4 * args.width, args.dropout,
                               padding=PADDING, begin=BEGIN, end=END)
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters")
    log = Path(args.output).with_suffix(".csv")
    train(model, DataLoader(training, args.batch_size, collate_fn=collate), log, args)
    model.eval()
    exact = {}
    for name, beams in ("greedy", 1), (f"beam search with {args.beams}", args.beams):
        start = time.perf_counter()
        found = translate(model, test, beams, args)
        exact[name] = sum(text == target for text, (_, target) in zip(found, test)) / len(test)
        print(f"{name}: {100 * exact[name]:.1f}% of {len(test)} exact, {time.perf_counter() - start:.1f} s")
    for (source, target), text in list(zip(test, found))[:5]:
        print(f"{source} -> {text}" + ("" if text == target else f", not {target}"))
    print(f"loss curve: {plot_logs([log], args.output)}")
    if 100 * min(exact.values()) < args.min_exact:
        raise SystemExit(f"{100 * min(exact.values()):.1f}% exact, below the {args.min_exact:g}% asked for")
    return min(exact.values())


if __name__ == "__main__":
    main()
