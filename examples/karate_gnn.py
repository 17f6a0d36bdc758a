"""Predicts which side each member of Zachary's karate club took when it split, from the friendships and two labels.

Known are only the sides of the instructor (node 0) and of the president (node 33); the graph network learns them, and its
layers carry them along the edges to the other 32 members. The graph comes with networkx.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path

import networkx
import numpy as np

import minidl
import minidl.nn.functional as F
from minidl.models import GAT, GCN, GraphSAGE
from minidl.optim import Adam

MODELS = {"gcn": lambda n: GCN(n, 16, 2), "sage": lambda n: GraphSAGE(n, 16, 2), "gat": lambda n: GAT(n, 8, 2, heads=4)}
LABELLED = minidl.tensor([0, 33])


def load() -> tuple[networkx.Graph, minidl.Tensor, minidl.Tensor, minidl.Tensor]:
    """(graph, features, edges, sides): a member is nobody but itself, hence the identity; friendships go both ways."""
    graph = networkx.karate_club_graph()
    sides = minidl.tensor([int(graph.nodes[node]["club"] == "Officer") for node in graph])
    edges = minidl.tensor(list(graph.to_directed().edges)).t().contiguous()
    return graph, minidl.eye(len(graph)), edges, sides


def train(name: str, x, edges, sides, seed: int, args: argparse.Namespace) -> tuple[minidl.Tensor, minidl.Tensor]:
    """Fit the two labels; returns the logits of all nodes and their features after the first layer."""
    minidl.manual_seed(seed)
    model = MODELS[name](len(x))
    optimizer = Adam(model.parameters(), lr=args.lr, weight_decay=5e-4)
    for _ in range(args.steps):
        optimizer.zero_grad()
        F.cross_entropy(model(x, edges)[LABELLED], sides[LABELLED]).backward()
        optimizer.step()
    model.eval()
    with minidl.no_grad():
        return model(x, edges), model.activation(model.layers[0](x, edges))


def plane(features: np.ndarray) -> np.ndarray:
    """The first two principal components of features (N, F), as (N, 2)."""
    u, s, _ = np.linalg.svd(features - features.mean(0), full_matrices=False)
    return (u * s)[:, :2]


def draw(graph: networkx.Graph, logits: minidl.Tensor, hidden: minidl.Tensor, sides: minidl.Tensor, output: str) -> Path:
    """Members coloured by the predicted side, framed in black where that is wrong: in the graph, and as the network embeds
    them."""
    from matplotlib.figure import Figure
    wrong = (logits.argmax(1) != sides).numpy()
    style = {"c": F.softmax(logits, 1)[:, 1].numpy(), "cmap": "coolwarm", "vmin": 0, "vmax": 1,
             "edgecolors": np.where(wrong, "black", "white"), "linewidths": 1.5, "s": 220, "zorder": 2}
    figure = Figure(figsize=(11, 5), layout="constrained")
    left, right = figure.subplots(1, 2)
    places = networkx.spring_layout(graph, seed=1)
    for axes, points in ((left, np.array([places[node] for node in graph])), (right, plane(hidden.numpy()))):
        axes.scatter(*points.T, **style)
        for node, point in enumerate(points):
            axes.annotate(str(node), point, ha="center", va="center", fontsize=7)
    for a, b in graph.edges:
        left.plot(*zip(places[a], places[b]), color="0.8", linewidth=0.8, zorder=1)
    left.set(title="friendships; colour: predicted side, black frame: wrong", xticks=[], yticks=[])
    right.set(title="first layer's features, two principal components")
    figure.savefig(output)
    return Path(output)


def main(argv: list[str] | None = None) -> float:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=MODELS, default="gcn", help="kind of graph network (default gcn)")
    parser.add_argument("--steps", type=int, default=200, help="updates (default 200)")
    parser.add_argument("--lr", type=float, default=0.01, help="learning rate (default 0.01)")
    parser.add_argument("--seeds", type=int, default=5, help="runs, with other initial weights each (default 5)")
    parser.add_argument("--min-accuracy", type=float, default=0.0, help="fail if the median run is below this percentage")
    parser.add_argument("--output", default="karate_gnn.png", help="where the picture of the first run goes")
    args = parser.parse_args(argv)
    graph, x, edges, sides = load()
    runs = [train(args.model, x, edges, sides, seed, args) for seed in range(args.seeds)]
    right = [int((logits.argmax(1) == sides).sum()) for logits, _ in runs]
    for seed, count in enumerate(right):
        print(f"{args.model}, seed {seed}: {count} of {len(graph)} members on the right side")
    accuracy = statistics.median(right) / len(graph)
    print(f"median accuracy {100 * accuracy:.1f}%; picture: {draw(graph, *runs[0], sides, args.output)}")
    if 100 * accuracy < args.min_accuracy:
        raise SystemExit(f"median accuracy below the {args.min_accuracy:g}% asked for")
    return accuracy


if __name__ == "__main__":
    main()
