"""The house rules that a machine can check: imports go downwards, none is circular, and `import minidl` stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "minidl"
FLOORS = {
    "version": 0, "autograd": 0,
    "tensor": 1, "cuda": 1, "linalg": 1,
    "nn": 2, "optim": 2, "amp": 2, "data": 2,
    "distributed": 3, "compression": 3, "models": 3, "interop": 3, "train": 3,
    "__init__": 4, "__main__": 4,
}
MAY_USE_A_SIBLING = {("train", "distributed")}
OPTIONAL = {"cupy", "cupyx", "mpi4py", "numba", "threadpoolctl", "tqdm", "tensorboard", "matplotlib", "PIL", "torch",
            "ml_dtypes"}
FILES = sorted(PACKAGE.rglob("*.py"))


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path) for path in FILES}


def imports(path: Path):
    """(line, imported module, is it inside a function) for each import of a file."""
    tree = ast.parse(path.read_text())
    inside = {id(node) for function in ast.walk(tree) if isinstance(function, (ast.FunctionDef, ast.Lambda))
              for node in ast.walk(function)}
    typing_only = {id(node) for block in ast.walk(tree) if isinstance(block, ast.If)
                   and "TYPE_CHECKING" in ast.dump(block.test) for node in ast.walk(block)}
    package = module_name(path) if path.name == "__init__.py" else module_name(path).rpartition(".")[0]
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name, id(node) in inside
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[:len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([base] if base else [])])
            for alias in node.names:
                whole = f"{base}.{alias.name}"
                yield node.lineno, whole if whole in MODULES else base, id(node) in inside


def top(name: str) -> str:
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_downwards(path):
    here = top(module_name(path))
    assert here in FLOORS, f"minidl/{here} stands on no floor; say which in FLOORS"
    for line, name, inside in imports(path):
        if not name.startswith("minidl"):
            assert not inside or name.split(".")[0] in OPTIONAL, (
                f"{path}:{line} imports {name} inside a function; only optional dependencies may be")
            continue
        there = top(name)
        assert not inside, f"{path}:{line} imports {name} inside a function"
        if there == here or here in ("__init__", "__main__"):
            continue
        allowed = FLOORS[there] < FLOORS[here] or (here, there) in MAY_USE_A_SIBLING or (
            FLOORS[there] == FLOORS[here] == 1)
        assert allowed, f"{path}:{line}: {here} (floor {FLOORS[here]}) imports {there} (floor {FLOORS[there]})"


def test_no_import_is_circular():
    graph = {module_name(path): {name for _, name, _ in imports(path) if name in MODULES} for path in FILES}
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, "circular import: " + " -> ".join([*path[path.index(name):], name])
        if name in done:
            return
        for other in sorted(graph[name]):
            visit(other, (*path, name))
        done.add(name)

    for name in sorted(graph):
        visit(name, ())


def test_importing_minidl_loads_nothing_heavy():
    code = "import sys, minidl; print(' '.join(sorted({name.split('.')[0] for name in sys.modules})))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout.split()
    assert "minidl" in loaded
    heavy = OPTIONAL | {"scipy", "sklearn", "pandas", "hypothesis", "pytest"}
    assert not heavy & set(loaded)


def test_importing_minidl_makes_its_parts_reachable():
    code = "import minidl; minidl.autograd.grad; minidl.nn.functional.linear; minidl.tensor; minidl.cuda.is_available"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_file_is_a_god_file(path):
    assert path.read_text().count("\n") <= 450, f"{path} has grown; look for a seam"
