"""Softmax cross-entropy of class indices, and the sums over alignments of connectionist temporal classification."""

from __future__ import annotations

from typing import Any

NEVER = -1e30  # stands for log(0), so that differences stay finite


class LossKernels:
    """Losses that are more than a composition of elementary functions."""

    module: Any
    exp: Any
    log: Any
    where: Any
    arange: Any
    zeros: Any
    full: Any
    logaddexp: Any
    maximum: Any
    minimum: Any
    scatter_add: Any

    def cross_entropy(self, x: Any, target: Any, coefficient: Any) -> tuple:
        """logsumexp(row) - row[target] for each row of x (N, C), times its coefficient; with the rows' logsumexp (N, 1).

        A coefficient of 0 gives 0 whatever the row holds. None stands for ones.
        """
        rows = self.arange(x.shape[0])
        top = x[rows, x.argmax(1)][:, None]  # faster than NumPy's maximum of rows
        shifted = x - top
        total = self.module.add.reduce(self.exp(shifted, out=shifted), axis=1, keepdims=True)
        lse = self.log(total)
        lse += top
        losses = lse[:, 0] - x[rows, target]
        if coefficient is not None:
            losses = self.where(coefficient == 0, 0, losses) * coefficient
        return losses, lse

    def cross_entropy_gradient(self, r: Any, x: Any, lse: Any, target: Any) -> Any:
        """(softmax(x) - one_hot(target)) * r, from the rows' logsumexp; r is (N,) or 0-d."""
        p = x - lse
        self.exp(p, out=p)
        p[self.arange(x.shape[0]), target] -= 1
        p *= r[:, None] if r.ndim else r
        return p

    def any_outside(self, index: Any, count: int) -> bool:
        """True if an integer of `index` does not lie in [0, count); costs one pass over int64."""
        if index.size == 0:
            return False
        if index.dtype.itemsize == 8:  # as unsigned numbers the negative ones are large
            return int(index.view(self.module.uint64).max()) >= count
        return bool(((index < 0) | (index >= count)).any())

    # Connectionist temporal classification (Graves et al. 2006, equations 6 to 16), in log space. x is (T, N, C), a path
    # runs through the states of `labels` (N, L): the target with blanks between and around its classes, padded at the
    # end. `skip` (N, L) says where a path may come from two states before. Lengths are (N,).

    def ctc_loss(self, x: Any, labels: Any, skip: Any, input_lengths: Any, target_lengths: Any,
                 zero_infinity: bool) -> tuple:
        """-log of the probability of all paths, inf or 0 where there is none; that with inf; the log sums alpha (T, N, L)."""
        emitted = self.ctc_emitted(x, labels)
        frames, batch, states = emitted.shape
        alphas = self.full((frames, batch, states + 2), NEVER, x.dtype)  # two states ahead that nothing comes from
        alphas[:1, :, 2:4] = emitted[:1, :, :2]
        for t in range(1, frames):
            before = alphas[t - 1]
            two_back = self.where(skip, before[:, :-2], NEVER)
            alphas[t, :, 2:] = self.log_sum_of_three(before[:, 2:], before[:, 1:-1], two_back) + emitted[t]
        alphas = alphas[:, :, 2:]
        likelihood = self.ctc_likelihood(alphas, input_lengths, target_lengths)
        possible = likelihood > NEVER / 2
        losses = self.where(possible, -likelihood, float("inf"))
        return self.where(possible, losses, 0) if zero_infinity else losses, losses, alphas

    def ctc_likelihood(self, alphas: Any, input_lengths: Any, target_lengths: Any) -> Any:
        """log of the sum over the paths that end in the last blank or the last class at the last frame, (N,)."""
        frames, batch, _ = alphas.shape
        without_frames = self.where(target_lengths > 0, NEVER, self.zeros(batch, alphas.dtype))
        if frames == 0:
            return without_frames
        rows, frame, last = self.arange(batch), self.maximum(input_lengths - 1, 0), 2 * target_lengths
        in_label = self.where(target_lengths > 0, alphas[frame, rows, self.maximum(last - 1, 0)], NEVER)
        return self.where(input_lengths > 0, self.logaddexp(alphas[frame, rows, last], in_label), without_frames)

    def ctc_gradient(self, g: Any, x: Any, alphas: Any, losses: Any, labels: Any, skip: Any, input_lengths: Any,
                     target_lengths: Any, zero_infinity: bool) -> Any:
        """The gradient of ctc_loss for x: -g times the probability of each class in each frame, given the target."""
        emitted = self.ctc_emitted(x, labels)
        frames, batch, states = emitted.shape
        state = self.arange(states)
        at_end = (state == 2 * target_lengths[:, None]) | (state == 2 * target_lengths[:, None] - 1)
        skip_ahead = self.zeros((batch, states + 2), skip.dtype)
        skip_ahead[:, :-2] = skip
        beta = self.full((batch, states + 2), NEVER, x.dtype)
        possible = losses < float("inf")
        total = self.where(possible, losses, 0)[:, None]
        posterior = self.zeros(emitted.shape, x.dtype)
        for t in range(frames - 1, -1, -1):
            two_ahead = self.where(skip_ahead[:, 2:], beta[:, 2:], NEVER)
            reached = self.log_sum_of_three(beta[:, :-2], beta[:, 1:-1], two_ahead)
            is_last = (input_lengths == t + 1)[:, None]
            ahead = self.where(is_last, self.where(at_end, 0, NEVER), reached)
            posterior[t] = self.exp(self.minimum(alphas[t] + ahead + total, 0))
            beta[:, :-2] = ahead + emitted[t]
        posterior *= self.where(possible, -g, 0 if zero_infinity else float("nan"))[:, None]
        posterior = self.where((self.arange(frames)[:, None] < input_lengths)[:, :, None], posterior, 0)
        out = self.zeros(x.shape, x.dtype)
        index = (self.arange(frames)[:, None, None], self.arange(batch)[:, None], labels)
        self.scatter_add(out, index, posterior)
        return out

    def ctc_emitted(self, x: Any, labels: Any) -> Any:
        """The log-probability of each state's class in each frame, (T, N, L); none is lower than NEVER."""
        return self.maximum(x[:, self.arange(x.shape[1])[:, None], labels], NEVER)

    def log_sum_of_three(self, a: Any, b: Any, c: Any) -> Any:
        """log(exp(a) + exp(b) + exp(c)) of finite numbers."""
        top = self.maximum(self.maximum(a, b), c)
        return self.log(self.exp(a - top) + self.exp(b - top) + self.exp(c - top)) + top
