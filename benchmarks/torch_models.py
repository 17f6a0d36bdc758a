"""The models of amp.py in PyTorch, and their training steps in float32 and under CPU autocast."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

VOCABULARY = 65


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


def lenet() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(3136, 128), nn.ReLU(), nn.Linear(128, 10))


class Block(nn.Module):
    """A residual block of ResNet-20 with a shortcut without parameters."""

    def __init__(self, channels: int, width: int, stride: int):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        self.new, self.stride = width - channels, stride

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        if self.new:
            x = F.pad(x[:, :, ::self.stride, ::self.stride], (0, 0, 0, 0, self.new // 2, self.new - self.new // 2))
        return F.relu(x + y)


def resnet20() -> nn.Module:
    blocks = [Block(16 * 2 ** max(stage - (i == 0), 0), 16 * 2 ** stage, 2 if stage and i == 0 else 1)
              for stage in range(3) for i in range(3)]
    return nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), *blocks,
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


class GPTBlock(nn.Module):
    """A pre-norm Transformer block."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width, bias=False), nn.LayerNorm(width, bias=False)
        self.qkv, self.proj = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.up, self.down = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, t, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(n, t, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(n, t, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    """Four layers of width 256 over 128 positions."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, 256), nn.Embedding(128, 256)
        self.blocks = nn.Sequential(*[GPTBlock(256, 4) for _ in range(4)])
        self.norm = nn.LayerNorm(256, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
        return F.linear(self.norm(self.blocks(x)), self.tokens.weight).flatten(0, 1)


MODELS: dict[str, Callable[[], nn.Module]] = {"mlp": mlp, "lenet": lenet, "resnet20": resnet20, "gpt": GPT}
SLOW_IN_FLOAT16 = ("lenet", "resnet20")  # a step of LeNet takes 4 s on a CPU, one of ResNet-20 two minutes


def step_of(name: str, shape: tuple[int, ...], dtype: Any) -> Callable[[], float]:
    """A training step; dtype None is float32 without autocast."""
    torch.manual_seed(0)
    model = MODELS[name]()
    if name == "gpt":
        x, y = torch.randint(VOCABULARY, shape), torch.randint(VOCABULARY, (shape[0] * shape[1],))
        optimizer: Any = torch.optim.AdamW(model.parameters(), lr=1e-3)
    else:
        x, y = torch.randn(shape), torch.randint(10, shape[:1])
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def step() -> float:
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=dtype or torch.bfloat16, enabled=dtype is not None):
            loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def steps(name: str, shape: tuple[int, ...], dtype: str, threads: int) -> dict[str, Callable[[], float]]:
    """{"torch": the step in float32, "torch O1": under autocast}, the latter without the models SLOW_IN_FLOAT16 in it."""
    torch.set_num_threads(threads)
    found = {"torch": step_of(name, shape, None)}
    if dtype != "float16" or name not in SLOW_IN_FLOAT16:
        found["torch O1"] = step_of(name, shape, getattr(torch, dtype))
    return found
