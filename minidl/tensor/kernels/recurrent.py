"""Recurrent layers over all time steps, for one direction, and backward through time.

The inputs of all steps are multiplied in one product, as are the gradients of weights and inputs. States lie in one array
of one more step than there are: forward in time the state before step t has place t and that after it t + 1, in reverse the
other way round, so that outputs are a view of the states. With batch sizes (integers that do not grow) step t concerns the
first sizes[t] sequences, and the states of the others stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class RecurrentKernels:
    """Layers of LSTM, GRU and plain RNN cells. x is (T, N, I), a state (N, H); a weight of k gates is (k * H, I or H)."""

    empty: Any
    zeros: Any
    full: Any
    tanh: Any
    maximum: Any
    sum: Any
    concatenate: Any
    ascontiguousarray: Any

    def lstm(self, x: Any, h0: Any, c0: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, w_hr: Any, sizes: Any,
             reverse: bool) -> tuple:
        """((outputs, last h, last c), what lstm_gradients needs); gates in the order input, forget, cell, output.

        A sigmoid is (tanh(x / 2) + 1) / 2, so that all gates take one tanh; the halves are multiplied into the weights.
        """
        size = c0.shape[1]
        factor, shift = self.full(4 * size, 0.5, x.dtype), self.full(4 * size, 0.5, x.dtype)
        factor[2 * size:3 * size], shift[2 * size:3 * size] = 1, 0
        gates = self._of_inputs(x, w_ih, b_ih, b_hh)
        gates *= factor
        turned = self.ascontiguousarray(w_hh.T) * factor
        hs, cs = self._states(x.shape[0], h0, reverse), self._states(x.shape[0], c0, reverse)
        for t, before, now, n in _steps(x.shape, sizes, reverse):
            a = gates[t, :n]
            a += hs[before, :n].dot(turned)
            self.tanh(a, out=a)
            a *= factor
            a += shift
            i, f, g, o = _parts(a, 4)
            c = f * cs[before, :n]
            c += i * g
            h = o * self.tanh(c)
            _store(cs, before, now, n, c)
            _store(hs, before, now, n, h if w_hr is None else h.dot(w_hr.T))
        return (*self._results(hs, sizes, reverse), _last(cs, reverse)), (gates, hs, cs)

    def lstm_gradients(self, gy: Any, gh: Any, gc: Any, x: Any, w_ih: Any, w_hh: Any, w_hr: Any, kept: tuple, sizes: Any,
                       reverse: bool) -> tuple:
        """The gradients for x, h0, c0, w_ih, w_hh, the bias and w_hr."""
        gates, hs, cs = kept
        dh, dc, pre = gh.copy(), gc.copy(), self._blank(gates, sizes)
        gw_hr = None if w_hr is None else self.zeros(w_hr.shape, w_hr.dtype)
        for t, before, now, n in _steps(x.shape, sizes, not reverse, flipped=True):
            i, f, g, o = _parts(gates[t, :n], 4)
            di, df, dg, do = _parts(pre[t, :n], 4)
            tanh_c = self.tanh(cs[now, :n])
            d, e = dh[:n], dc[:n]
            d += gy[t, :n]
            if w_hr is not None:
                gw_hr += d.T.dot(o * tanh_c)
                d = d.dot(w_hr)
            e += d * o * (1 - tanh_c * tanh_c)
            di[...] = e * g * i * (1 - i)
            df[...] = e * cs[before, :n] * f * (1 - f)
            dg[...] = e * i * (1 - g * g)
            do[...] = d * tanh_c * o * (1 - o)
            e *= f
            dh[:n] = pre[t, :n].dot(w_hh)
        gx, gw_ih, bias = self._of_all_steps(pre, x, w_ih)
        return gx, dh, dc, gw_ih, _flat(pre).T.dot(_flat(_before(hs, reverse))), bias, gw_hr

    def gru(self, x: Any, h0: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, sizes: Any, reverse: bool) -> tuple:
        """((outputs, last h), what gru_gradients needs); gates in the order reset, update, new."""
        size = h0.shape[1]
        gates = self._of_inputs(x, w_ih, b_ih, None)
        if b_hh is not None:
            gates[..., :2 * size] += b_hh[:2 * size]
        gates[..., :2 * size] *= 0.5
        turned = self.ascontiguousarray(w_hh.T)
        turned[:, :2 * size] *= 0.5
        hs, news = self._states(x.shape[0], h0, reverse), self.empty((*x.shape[:2], size), x.dtype)
        for t, before, now, n in _steps(x.shape, sizes, reverse):
            h = hs[before, :n]
            product = h.dot(turned)
            rz, new = gates[t, :n, :2 * size], gates[t, :n, 2 * size:]
            rz += product[:, :2 * size]
            self.tanh(rz, out=rz)
            rz *= 0.5
            rz += 0.5
            news[t, :n] = product[:, 2 * size:]
            if b_hh is not None:
                news[t, :n] += b_hh[2 * size:]
            new += rz[:, :size] * news[t, :n]
            self.tanh(new, out=new)
            y = h - new
            y *= rz[:, size:]
            y += new
            _store(hs, before, now, n, y)
        return self._results(hs, sizes, reverse), (gates, news, hs)

    def gru_gradients(self, gy: Any, gh: Any, x: Any, w_ih: Any, w_hh: Any, kept: tuple, sizes: Any, reverse: bool) -> tuple:
        """The gradients for x, h0, w_ih, w_hh, b_ih and b_hh."""
        gates, news, hs = kept
        size = hs.shape[2]
        dh, pre, dnews = gh.copy(), self._blank(gates, sizes), self._blank(news, sizes)
        for t, before, _, n in _steps(x.shape, sizes, not reverse, flipped=True):
            r, z, new = _parts(gates[t, :n], 3)
            dr, dz, dn = _parts(pre[t, :n], 3)
            d = dh[:n]
            d += gy[t, :n]
            dn[...] = d * (1 - z) * (1 - new * new)
            dz[...] = d * (hs[before, :n] - new) * z * (1 - z)
            dr[...] = dn * news[t, :n] * r * (1 - r)
            dnews[t, :n] = dn * r
            d *= z
            d += pre[t, :n, :2 * size].dot(w_hh[:2 * size])
            d += dnews[t, :n].dot(w_hh[2 * size:])
        gx, gw_ih, bias = self._of_all_steps(pre, x, w_ih)
        states, dnews = _flat(_before(hs, reverse)), _flat(dnews)
        gw_hh = self.concatenate((_flat(pre)[:, :2 * size].T.dot(states), dnews.T.dot(states)))
        return gx, dh, gw_ih, gw_hh, bias, self.concatenate((bias[:2 * size], self.sum(dnews, 0)))

    def rnn(self, x: Any, h0: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, relu: bool, sizes: Any, reverse: bool) -> tuple:
        """((outputs, last h), what rnn_gradients needs) with tanh or relu of the sums."""
        sums = self._of_inputs(x, w_ih, b_ih, b_hh)
        turned = self.ascontiguousarray(w_hh.T)
        hs = self._states(x.shape[0], h0, reverse)
        for t, before, now, n in _steps(x.shape, sizes, reverse):
            a = sums[t, :n]
            a += hs[before, :n].dot(turned)
            _store(hs, before, now, n, self.maximum(a, 0) if relu else self.tanh(a))
        return self._results(hs, sizes, reverse), (hs,)

    def rnn_gradients(self, gy: Any, gh: Any, x: Any, w_ih: Any, w_hh: Any, kept: tuple, relu: bool, sizes: Any,
                      reverse: bool) -> tuple:
        """The gradients for x, h0, w_ih, w_hh and the bias."""
        hs, = kept
        dh, pre = gh.copy(), self._blank(_before(hs, reverse), sizes)
        for t, _, now, n in _steps(x.shape, sizes, not reverse, flipped=True):
            y = hs[now, :n]
            d = dh[:n] + gy[t, :n]
            d *= (y > 0) if relu else (1 - y * y)
            pre[t, :n] = d
            dh[:n] = d.dot(w_hh)
        gx, gw_ih, bias = self._of_all_steps(pre, x, w_ih)
        return gx, dh, gw_ih, _flat(pre).T.dot(_flat(_before(hs, reverse))), bias

    def _of_inputs(self, x: Any, w_ih: Any, b_ih: Any, b_hh: Any) -> Any:
        """What the inputs of all steps contribute to the gates, and the biases."""
        y = _flat(x).dot(w_ih.T)
        for bias in (b_ih, b_hh):
            if bias is not None:
                y += bias
        return y.reshape(*x.shape[:2], w_ih.shape[0])

    def _of_all_steps(self, pre: Any, x: Any, w_ih: Any) -> tuple:
        """The gradients for x, w_ih and the bias from that of the gates before their nonlinearities."""
        flat = _flat(pre)
        return flat.dot(w_ih).reshape(x.shape), flat.T.dot(_flat(x)), self.sum(flat, 0)

    def _states(self, steps: int, first: Any, reverse: bool) -> Any:
        states = self.empty((steps + 1, *first.shape), first.dtype)
        states[steps if reverse else 0] = first
        return states

    def _results(self, hs: Any, sizes: Any, reverse: bool) -> tuple:
        """The outputs, zero where there was no step, and the last states."""
        outputs = hs[:-1] if reverse else hs[1:]
        if sizes is not None:
            outputs = outputs.copy()
            for t, n in enumerate(sizes):
                outputs[t, n:] = 0
        return outputs, _last(hs, reverse)

    def _blank(self, like: Any, sizes: Any) -> Any:
        return (self.empty if sizes is None else self.zeros)(like.shape, like.dtype)


def _steps(shape: tuple, sizes: Any, backwards: bool, flipped: bool = False) -> Iterator[tuple]:
    """(t, place of the state before, place of the state after, number of sequences); `flipped` for a walk against the
    direction in which the layer ran."""
    towards_start = backwards is not flipped
    for t in (reversed(range(shape[0])) if backwards else range(shape[0])):
        n = shape[1] if sizes is None else sizes[t]
        yield (t, t + 1, t, n) if towards_start else (t, t, t + 1, n)


def _parts(a: Any, count: int) -> list:
    size = a.shape[1] // count
    return [a[:, k * size:(k + 1) * size] for k in range(count)]


def _store(states: Any, before: int, now: int, n: int, value: Any) -> None:
    states[now, :n] = value
    if n < states.shape[1]:
        states[now, n:] = states[before, n:]


def _last(states: Any, reverse: bool) -> Any:
    return states[0 if reverse else -1].copy()


def _before(states: Any, reverse: bool) -> Any:
    """The states before each step, in order of time."""
    return states[1:] if reverse else states[:-1]


def _flat(x: Any) -> Any:
    return x.reshape(x.shape[0] * x.shape[1], x.shape[2])
