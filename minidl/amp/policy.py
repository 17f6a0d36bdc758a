"""The global policy: the dtype in which everything outside any autocast region computes, in all threads."""

from __future__ import annotations

from ..tensor.autocast import set_everywhere
from ..tensor.policy import Policy

_global = [Policy("float32")]


def set_global_policy(policy: Policy | str) -> None:
    """Let all threads compute by a policy, except inside autocast regions and modules that have a policy of their own.

    Args:
        policy: or its name: "mixed_float16", "mixed_bfloat16", or "float32", which ends it.

    Raises:
        TypeError, ValueError: for what is no such policy.
    """
    if isinstance(policy, str):
        policy = Policy(policy)
    if not isinstance(policy, Policy):
        raise TypeError(f"set_global_policy expected a Policy or its name, got {type(policy).__name__}")
    if not policy.is_mixed and policy.name != "float32":
        raise ValueError(f"set_global_policy expected a mixed policy or float32, got {policy.name}, which needs parameters "
                         f"of that dtype; make them with minidl.set_default_dtype or module.to")
    set_everywhere(policy.compute_dtype if policy.is_mixed else None)
    _global[0] = policy


def global_policy() -> Policy:
    """The policy of all threads, "float32" where none was set."""
    return _global[0]
