"""Graph layers against dense adjacency matrices in NumPy; loops, duplicates, isolated nodes, empty graphs, halves, errors."""

import copy

import numpy as np
import pytest

import minidl
from minidl.autograd.gradcheck import gradcheck
from minidl.nn.activation import ReLU
from minidl.nn.container import Sequential
from minidl.nn.graph import GATConv, GCNConv, GINConv, SAGEConv, global_add_pool, global_max_pool, global_mean_pool
from minidl.nn.linear import Linear
from tests import fake_cuda

RNG = np.random.default_rng(5)
NODES = 6  # 5 is isolated, 4 has no incoming edge
PLAIN = np.array([[0, 1, 2, 2, 3, 4], [1, 2, 0, 1, 0, 3]])
LOOPED = np.array([[0, 1, 1, 2, 3, 3, 4], [1, 1, 2, 2, 0, 0, 0]])  # self-loops of 1 and 2, a double edge 3 -> 0
GRAPHS = pytest.mark.parametrize("edges", [PLAIN, LOOPED], ids=["plain", "looped"])


def features(width=3, nodes=NODES, dtype=np.float64):
    return RNG.normal(size=(nodes, width)).astype(dtype)


def adjacency(edges, weight=None, nodes=NODES):
    """a[target, source] is the sum of the weights of the edges."""
    a = np.zeros((nodes, nodes))
    np.add.at(a, (edges[1], edges[0]), 1.0 if weight is None else weight)
    return a


def array(tensor):
    return tensor.detach().numpy()


def run(layer, x, edges, **more):
    return array(layer.double()(minidl.tensor(x), minidl.tensor(edges), **more))


def check_parameters(layer):
    """The parameters' gradients against central differences."""
    x, edges = minidl.tensor(features()), minidl.tensor(LOOPED)
    shape = layer(x, edges).shape
    g = minidl.tensor(RNG.normal(size=shape))
    (layer(x, edges) * g).sum().backward()
    for name, parameter in layer.named_parameters():
        values, step = parameter.detach().numpy(), 1e-6
        for place in np.ndindex(values.shape):
            sums = []
            for sign in (1, -1):
                values[place] += sign * step
                sums.append((array(layer(x, edges)) * g.numpy()).sum())
                values[place] -= sign * step
            assert abs((sums[0] - sums[1]) / (2 * step) - parameter.grad.numpy()[place]) < 1e-7, (name, place)


# GCN

def dense_gcn(x, a, w, b, loop=1.0, normalize=True, add=True):
    if add:
        missing = np.diag(a) == 0
        a = a + np.diag(missing * loop)
    if normalize:
        degree = a.sum(1)
        scale = np.where(degree == 0, 0, 1 / np.sqrt(np.where(degree == 0, 1, degree)))
        a = scale[:, None] * a * scale
    return a @ (x @ w.T) + b


@GRAPHS
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("options", [{}, {"improved": True}, {"add_self_loops": False}, {"normalize": False}])
def test_gcn_is_a_product_with_the_normalized_adjacency_matrix(edges, weighted, options):
    layer, x = GCNConv(3, 4, **options), features()
    layer.bias.data = minidl.arange(4.0)
    weight = RNG.uniform(0.5, 2, edges.shape[1]) if weighted else None
    more = {"edge_weight": minidl.tensor(weight)} if weighted else {}
    got = run(layer, x, edges, **more)
    add = options.get("add_self_loops", options.get("normalize", True))
    loop = 2 if options.get("improved") else 1
    expected = dense_gcn(x, adjacency(edges, weight), array(layer.lin.weight), np.arange(4), loop,
                         options.get("normalize", True), add)
    np.testing.assert_allclose(got, expected, rtol=1e-10)


def test_gcn_gradients():
    layer = GCNConv(3, 2).double()
    weight = minidl.tensor(RNG.uniform(0.5, 2, LOOPED.shape[1]), requires_grad=True)
    x = minidl.tensor(features(), requires_grad=True)
    assert gradcheck(lambda x, weight: layer(x, minidl.tensor(LOOPED), weight), (x, weight))
    check_parameters(layer)


def test_gcn_without_loops_gives_isolated_nodes_no_nan():
    x = minidl.tensor(features(dtype=np.float32), requires_grad=True)
    weight = minidl.ones(PLAIN.shape[1], requires_grad=True)
    out = GCNConv(3, 2, add_self_loops=False)(x, minidl.tensor(PLAIN), weight)
    out.sum().backward()
    assert not array(out)[[4, 5]].any()
    assert np.isfinite(x.grad.numpy()).all() and np.isfinite(weight.grad.numpy()).all()


def test_gcn_cache_holds_the_first_graph_until_it_is_reset():
    layer, x = GCNConv(3, 2, cached=True), minidl.tensor(features(dtype=np.float32))
    first, other = layer(x, minidl.tensor(PLAIN)), layer(x, minidl.tensor(LOOPED))
    assert np.array_equal(array(first), array(other))
    assert np.array_equal(array(copy.deepcopy(layer)(x, minidl.tensor(LOOPED))), array(first))
    weight = layer.lin.weight.detach().clone()
    layer.reset_parameters()
    layer.lin.weight.data = weight
    assert not np.allclose(array(layer(x, minidl.tensor(LOOPED))), array(first))


def test_gcn_of_a_half_hub_neither_rounds_nor_overflows_its_degree():
    nodes = 5001
    edges = np.stack([np.arange(1, nodes), np.zeros(nodes - 1, int)])
    layer = GCNConv(1, 1, bias=False).half()
    layer.lin.weight.data = minidl.ones(1, 1, dtype=minidl.float16)
    out = layer(minidl.ones(nodes, 1, dtype=minidl.float16), minidl.tensor(edges))
    assert out.dtype == minidl.float16
    assert abs(float(array(out)[0, 0]) - (5000 / 5001 ** 0.5 + 1 / 5001)) < 0.05


# GraphSAGE

def dense_aggregate(x, edges, aggr):
    out = np.zeros((NODES, x.shape[1]))
    for node in range(NODES):
        rows = x[edges[0][edges[1] == node]]
        if len(rows):
            out[node] = {"mean": rows.mean(0), "sum": rows.sum(0), "max": rows.max(0)}[aggr]
    return out


@GRAPHS
@pytest.mark.parametrize("aggr", ["mean", "sum", "max"])
@pytest.mark.parametrize("options", [{}, {"root_weight": False}, {"project": True}, {"normalize": True}, {"bias": False}])
def test_sage_maps_what_the_neighbours_amount_to(edges, aggr, options):
    layer, x = SAGEConv(3, 4, aggr, **options), features()
    got = run(layer, x, edges)
    p = {name: array(value) for name, value in layer.named_parameters()}
    neighbours = np.maximum(x @ p["lin.weight"].T + p["lin.bias"], 0) if "project" in options else x
    expected = dense_aggregate(neighbours, edges, aggr) @ p["lin_l.weight"].T + p.get("lin_l.bias", 0)
    if options.get("root_weight", True):
        expected = expected + x @ p["lin_r.weight"].T
    if "normalize" in options:
        expected = expected / np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(got, expected, rtol=1e-10)


# GAT

def dense_gat(layer, x, edges):
    heads, width = layer.heads, layer.out_channels
    keep = edges[0] != edges[1]
    edges = np.concatenate([edges[:, keep], np.stack([np.arange(NODES)] * 2)], 1) if layer.add_self_loops else edges
    h = (x @ array(layer.lin.weight).T).reshape(NODES, heads, width)
    scores = (h * array(layer.att_src)).sum(-1)[edges[0]] + (h * array(layer.att_dst)).sum(-1)[edges[1]]
    scores = np.where(scores > 0, scores, layer.negative_slope * scores)
    out, attention = np.zeros((NODES, heads, width)), np.zeros_like(scores)
    for node in range(NODES):
        here = edges[1] == node
        shares = np.exp(scores[here])
        attention[here] = shares / shares.sum(0)
        out[node] = (attention[here][:, :, None] * h[edges[0][here]]).sum(0)
    out = out.reshape(NODES, -1) if layer.concat else out.mean(1)
    return out + array(layer.bias), edges, attention


@GRAPHS
@pytest.mark.parametrize("options", [{}, {"heads": 3}, {"heads": 3, "concat": False}, {"add_self_loops": False},
                                     {"negative_slope": 0.5, "heads": 2}])
def test_gat_weighs_neighbours_by_attention(edges, options):
    layer, x = GATConv(3, 4, **options), features()
    layer.bias.data = minidl.arange(float(len(layer.bias)))
    got, (where, attention) = layer.double()(minidl.tensor(x), minidl.tensor(edges), return_attention_weights=True)
    out, places, shares = dense_gat(layer, x, edges)
    np.testing.assert_allclose(array(got), out, rtol=1e-10)
    np.testing.assert_allclose(array(attention), shares, rtol=1e-10)
    assert np.array_equal(where.numpy(), places)


def test_gat_gradients():
    layer = GATConv(3, 2, heads=2).double()
    x = minidl.tensor(features(), requires_grad=True)
    assert gradcheck(lambda x: layer(x, minidl.tensor(LOOPED)), (x,))
    check_parameters(layer)


def test_gat_drops_attention_in_training_only():
    layer, x, edges = GATConv(3, 2, dropout=0.5), minidl.tensor(features(dtype=np.float32)), minidl.tensor(PLAIN)
    minidl.manual_seed(1)
    _, (_, attention) = layer(x, edges, True)
    assert (array(attention) == 0).any()
    layer.eval()
    assert np.array_equal(array(layer(x, edges)), array(layer(x, edges)))
    assert (array(layer(x, edges, True)[1][1]) > 0).all()


# GIN

@GRAPHS
@pytest.mark.parametrize("train_eps", [False, True])
def test_gin_adds_neighbours_to_the_node(edges, train_eps):
    mlp = Sequential(Linear(3, 5), ReLU(), Linear(5, 2))
    layer, x = GINConv(mlp, 0.25, train_eps), features()
    got = run(layer, x, edges)
    expected = array(mlp(minidl.tensor(adjacency(edges) @ x + 1.25 * x)))
    np.testing.assert_allclose(got, expected, rtol=1e-10)
    assert ("eps" in dict(layer.named_parameters())) == train_eps and layer.state_dict()["eps"].shape == (1,)


def test_gin_reset_restores_eps():
    layer = GINConv(Sequential(Linear(2, 2)), 0.5, train_eps=True)
    layer.eps.data = minidl.zeros(1)
    layer.reset_parameters()
    assert layer.eps.tolist() == [0.5]


# All

LAYERS = [GCNConv(3, 2), SAGEConv(3, 2), SAGEConv(3, 2, "max"), GATConv(3, 2), GINConv(Linear(3, 2))]
ALL = pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: type(layer).__name__)


@pytest.mark.parametrize("layer, names", [
    (GCNConv(3, 2), ["bias", "lin.weight"]),
    (SAGEConv(3, 2, project=True), ["lin.weight", "lin.bias", "lin_l.weight", "lin_l.bias", "lin_r.weight"]),
    (GATConv(3, 2), ["att_src", "att_dst", "bias", "lin.weight"]),
    (GINConv(Linear(3, 2)), ["eps", "nn.weight", "nn.bias"]),
], ids=str)
def test_state_dicts_have_the_names_of_pytorch_geometric(layer, names):
    assert list(layer.state_dict()) == names


@ALL
def test_graphs_without_edges_or_without_nodes(layer):
    none = minidl.zeros(2, 0, dtype=minidl.int64)
    assert np.isfinite(array(layer(minidl.ones(3, 3), none))).all()
    assert layer(minidl.zeros(0, 3), none).shape == (0, 2)


@ALL
def test_halves_stay_near_float32(layer):
    x = features(dtype=np.float32)
    expected = array(layer(minidl.tensor(x), minidl.tensor(LOOPED)))
    half = copy.deepcopy(layer).half()(minidl.tensor(x).half(), minidl.tensor(LOOPED))
    assert half.dtype == minidl.float16
    np.testing.assert_allclose(array(half), expected, atol=1e-2)


@ALL
def test_a_gpu_computes_the_same(layer):
    x, edges = minidl.tensor(features(dtype=np.float32)), minidl.tensor(LOOPED)
    expected = array(layer(x, edges))
    with fake_cuda.installed():
        there = copy.deepcopy(layer).cuda()
        out = there(x.cuda(), edges.cuda())
        out.sum().backward()
        np.testing.assert_allclose(array(out.cpu()), expected, rtol=1e-5, atol=1e-6)


@ALL
def test_edges_of_int32(layer):
    x = minidl.tensor(features(dtype=np.float32))
    for edges in (PLAIN, LOOPED, LOOPED[:, :1]):
        out = layer(x, minidl.tensor(edges.astype(np.int32)))
        np.testing.assert_array_equal(array(out), array(layer(x, minidl.tensor(edges))))


@ALL
@pytest.mark.parametrize("edges, error, words", [
    (np.array([[0, 6], [1, 1]], np.int32), IndexError, r"\[0, 6\), got 6"),
    (np.array([[0, 6], [1, 1]]), IndexError, r"\[0, 6\), got 6"),
    (np.array([[0, 1], [-1, 1]]), IndexError, "got -1"),
    (np.zeros((4, 2), int), ValueError, r"\(2, E\).*transpose"),
    (np.zeros((2, 4)), TypeError, "int64, got float64"),
])
def test_bad_edges(layer, edges, error, words):
    with pytest.raises(error, match=words):
        layer(minidl.tensor(features(dtype=np.float32)), minidl.tensor(edges))


@pytest.mark.parametrize("call, error, words", [
    (lambda x, e: GCNConv(4, 2)(x, e), ValueError, r"\(N, 4\).*\(6, 3\)"),
    (lambda x, e: GCNConv(3, 2)((x, x), e), TypeError, "tensor as x, got tuple"),
    (lambda x, e: GCNConv(3, 2)(x, e, minidl.ones(3)), ValueError, r"\(6,\).*\(3,\)"),
    (lambda x, e: GCNConv(3, 2)(x, e, minidl.ones(6, dtype=minidl.int64)), TypeError, "floating edge weights"),
    (lambda x, e: GCNConv(3, 2, cached=True)(x, e, minidl.ones(6, requires_grad=True)), ValueError, "cached=False"),
    (lambda x, e: GCNConv(3, 2, add_self_loops=True, normalize=False), ValueError, "together with normalize"),
    (lambda x, e: SAGEConv(3, 2, "median"), ValueError, "'median'"),
    (lambda x, e: GATConv(3, 2, dropout=2), ValueError, r"\[0, 1\], got 2"),
])
def test_bad_arguments(call, error, words):
    with pytest.raises(error, match=words):
        call(minidl.tensor(features(dtype=np.float32)), minidl.tensor(PLAIN))


@pytest.mark.parametrize("pool, reduce", [
    (global_add_pool, np.sum), (global_mean_pool, np.mean), (global_max_pool, np.max)])
def test_pools(pool, reduce):
    x, batch = features(), np.array([0, 0, 2, 2, 2, 0])
    expected = np.stack([reduce(x[batch == graph], 0) if graph != 1 else np.zeros(3) for graph in range(3)])
    np.testing.assert_allclose(array(pool(minidl.tensor(x), minidl.tensor(batch))), expected)
    assert pool(minidl.tensor(x), minidl.tensor(batch), 5).shape == (5, 3)
    np.testing.assert_allclose(array(pool(minidl.tensor(x), None)), reduce(x, 0, keepdims=True))
