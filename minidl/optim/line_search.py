"""A line search for the strong Wolfe conditions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from ..tensor.tensor import Tensor

DECREASE = 1e-4   # the share of the decrease that the slope promises that there must be
CURVATURE = 0.9   # the share of the slope that may be left
SMALLEST = 1e-9   # an interval in which no element of the position differs more is not divided again


class Point(NamedTuple):
    """The loss on a line at t, its gradient there, and its slope along the line."""

    t: float
    loss: float
    gradient: Tensor
    slope: float


def strong_wolfe(at: Callable[[float], Point], start: Point, t: float, size: float, budget: int) -> tuple[Point, int]:
    """A point with enough decrease and a flat enough slope, or the best one that the budget allowed.

    Args:
        at: evaluates the line at t.
        start: the line at 0.
        t: where to look first.
        size: the largest element of the line's direction.
        budget: evaluations after the first.

    Returns:
        the point, and how often `at` was called.

    Source: Nocedal and Wright 2006, algorithm 3.5.
    """
    previous, point, calls = start, at(t), 1
    while calls <= budget:
        if not _decreases(start, point) or (calls > 2 and point.loss >= previous.loss):
            return _zoom(at, start, previous, point, size, budget, calls)
        if _flat(start, point):
            return point, calls
        if point.slope >= 0:
            return _zoom(at, start, previous, point, size, budget, calls)
        t = _minimum(previous, point, point.t + 0.01 * (point.t - previous.t), point.t * 10)
        previous, point, calls = point, at(t), calls + 1
    return point if point.loss < start.loss else start, calls


def _zoom(at: Callable[[float], Point], start: Point, one: Point, other: Point, size: float, budget: int,
          calls: int) -> tuple[Point, int]:
    """Divide an interval that holds a suitable point (algorithm 3.6)."""
    low, high = (other, one) if other.loss < one.loss else (one, other)
    near_the_end = False
    while calls <= budget and abs(high.t - low.t) * size >= SMALLEST:
        left, right = sorted((low.t, high.t))
        t = _minimum(low, high, left, right)
        margin = 0.1 * (right - left)
        if min(right - t, t - left) >= margin:
            near_the_end = False
        elif near_the_end or t >= right or t <= left:  # a second time: step inside, or the interval shrinks too slowly
            t = right - margin if right - t < t - left else left + margin
            near_the_end = False
        else:
            near_the_end = True
        point, calls = at(t), calls + 1
        if not _decreases(start, point) or point.loss >= low.loss:
            low, high = (point, low) if point.loss < low.loss else (low, point)
            continue
        if _flat(start, point):
            return point, calls
        if point.slope * (high.t - low.t) >= 0:
            high = low
        low = point
    return low, calls


def _decreases(start: Point, point: Point) -> bool:
    return point.loss <= start.loss + DECREASE * point.t * start.slope  # not where the loss is NaN


def _flat(start: Point, point: Point) -> bool:
    return abs(point.slope) <= -CURVATURE * start.slope


def _minimum(one: Point, other: Point, lowest: float, highest: float) -> float:
    """Where the cubic through two points and their slopes has its minimum, in bounds; their middle where it has none."""
    middle = (lowest + highest) / 2
    if one.t > other.t:
        one, other = other, one
    distance = other.t - one.t
    if not distance:
        return middle
    a = one.slope + other.slope - 3 * (other.loss - one.loss) / distance
    square = a * a - one.slope * other.slope
    if not 0 <= square < math.inf:
        return middle
    root = math.sqrt(square)
    divisor = other.slope - one.slope + 2 * root
    if not divisor:
        return middle
    return min(max(other.t - distance * (other.slope + root - a) / divisor, lowest), highest)
