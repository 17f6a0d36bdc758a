"""Trains a small GPT on the characters of a text, measures it on the last tenth, and lets it write.

The text is --text, or else tinyshakespeare in the folder of data sets, or else what Python's own help says. With
--checkpoint a run that was interrupted goes on where it was, and ends with the same bits as one that was not.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path

import minidl
import minidl.nn.functional as F
from minidl.data import CharVocabulary, TextWindows, find_data, read_text
from minidl.models import GPT
from minidl.nn.utils import clip_grad_norm_
from minidl.optim import AdamW
from minidl.optim.lr_scheduler import cosine_with_warmup
from minidl.train import Checkpoint, CSVProgressWriter, plot_logs


def load_text(args: argparse.Namespace) -> str:
    """The text asked for, or the best one that is there."""
    if args.text:
        return read_text(args.text)
    try:
        return read_text(find_data("text/tinyshakespeare.txt", args.data))
    except FileNotFoundError:
        from pydoc_data.topics import topics
        print("no tinyshakespeare (say where data lie with --data or MINIDL_DATA): learning Python's help texts instead")
        return "\n\n".join(topics.values())


def parameter_groups(model: GPT, decay: float) -> list[dict]:
    """Weight decay for matrices only: norms (and biases) are not what overfits."""
    matrices = [p for p in model.parameters() if p.ndim >= 2]
    others = [p for p in model.parameters() if p.ndim < 2]
    return [{"params": matrices, "weight_decay": decay}, {"params": others, "weight_decay": 0.0}]


def loss_of(model: GPT, windows: TextWindows, index, reduction: str = "mean"):
    """Cross-entropy of the characters that follow in some of the windows."""
    x, y = (minidl.from_numpy(tokens) for tokens in windows[index])
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten(), reduction=reduction)


def validate(model: GPT, windows: TextWindows) -> float:
    """Mean loss of a character over all windows."""
    model.eval()
    with minidl.no_grad():
        total = sum(loss_of(model, windows, slice(i, i + 64), "sum").item() for i in range(0, len(windows), 64))
    model.train()
    return total / (len(windows) * model.context)


def train(model: GPT, windows: TextWindows, characters: str, log: Path, args: argparse.Namespace) -> None:
    """Train to the last step, from the checkpoint if there is one."""
    optimizer = AdamW(parameter_groups(model, args.decay), lr=args.lr, betas=(0.9, 0.99))
    schedule = cosine_with_warmup(optimizer, args.warmup, args.steps, args.lr / 10)
    progress = CSVProgressWriter(log, freq=max(args.steps // 100, 1))
    checkpoint = Checkpoint(model=model, optimizer=optimizer, schedule=schedule, progress=progress)
    first = 0
    if args.checkpoint and Path(args.checkpoint).exists():
        extra = checkpoint.restore(args.checkpoint)
        if extra["characters"] != characters:
            raise SystemExit(f"{args.checkpoint} is of a text with other characters; give that text with --text")
        first = extra["step"]
        print(f"going on after step {first}")
    else:
        log.unlink(missing_ok=True)
    last = min(args.stop_after or args.steps, args.steps)
    start = time.perf_counter()
    for step in range(first, last):
        optimizer.zero_grad()
        loss = loss_of(model, windows, minidl.randint(len(windows), (args.batch_size,)).numpy())
        loss.backward()
        clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        progress.update_training(args.batch_size, loss.item() * args.batch_size)
        if (step + 1) % 100 == 0:
            print(f"step {step + 1:5d}: loss {loss.item():.3f}, {time.perf_counter() - start:.0f} s", flush=True)
        if args.checkpoint and ((step + 1) % args.save_every == 0 or step + 1 == last):
            checkpoint.save(args.checkpoint, step=step + 1, characters=characters)


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", help="the file to learn (UTF-8)")
    parser.add_argument("--data", help="the folder of data sets (default: the environment variable MINIDL_DATA)")
    parser.add_argument("--layers", type=int, default=4, help="Transformer blocks (default 4)")
    parser.add_argument("--heads", type=int, default=4, help="attention heads (default 4)")
    parser.add_argument("--width", type=int, default=128, help="features of a position (default 128)")
    parser.add_argument("--context", type=int, default=64, help="characters seen at once (default 64)")
    parser.add_argument("--dropout", type=float, default=0.0, help="probability (default 0)")
    parser.add_argument("--steps", type=int, default=2000, help="updates (default 2000)")
    parser.add_argument("--warmup", type=int, default=100, help="updates in which the learning rate rises (default 100)")
    parser.add_argument("--batch-size", type=int, default=12, help="windows an update (default 12)")
    parser.add_argument("--lr", type=float, default=1e-3, help="highest learning rate; it ends at a tenth (default 1e-3)")
    parser.add_argument("--decay", type=float, default=0.1, help="weight decay of matrices (default 0.1)")
    parser.add_argument("--seed", type=int, default=0, help="of parameters, windows and the sample (default 0)")
    parser.add_argument("--checkpoint", help="where to save the run, and to go on from if the file is there")
    parser.add_argument("--save-every", type=int, default=500, help="updates from one save to the next (default 500)")
    parser.add_argument("--stop-after", type=int, help="end before the last step, to go on some other time")
    parser.add_argument("--sample", type=int, default=400, help="characters to write at the end (default 400)")
    parser.add_argument("--max-loss", type=float, default=math.inf, help="fail if the validation loss ends above this")
    parser.add_argument("--output", default="char_gpt.png", help="where the loss curve goes (default char_gpt.png)")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> float:
    args = parse(argv)
    text = load_text(args)
    vocabulary = CharVocabulary(text)
    tokens = vocabulary.encode(text)
    training, validation = tokens[:len(tokens) * 9 // 10], tokens[len(tokens) * 9 // 10:]
    minidl.manual_seed(args.seed)
    model = GPT(len(vocabulary), args.context, args.layers, args.heads, args.width, args.dropout)
    print(f"{len(text):,} characters, {len(vocabulary)} different; {sum(p.numel() for p in model.parameters()):,} parameters")
    log = Path(args.output).with_suffix(".csv")
    train(model, TextWindows(training, args.context, stride=1), vocabulary.characters, log, args)
    loss = validate(model, TextWindows(validation, args.context))
    print(f"validation loss {loss:.4f}\n")
    model.eval()
    print(vocabulary.decode(model.generate(minidl.from_numpy(validation[None, :1]), args.sample)[0]))
    print(f"\nloss curve: {plot_logs([log], args.output)}")
    if not loss <= args.max_loss:
        raise SystemExit(f"validation loss {loss:.4f} is above the {args.max_loss:g} asked for")
    return loss


if __name__ == "__main__":
    main()
