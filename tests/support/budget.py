"""`python -m tests.support.budget`: how long modules and functions are, and how broadly errors are caught.

A budget to notice, not to game: it prints, and fails nothing.
"""

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
CODE = ("app", "bots", "learner")
LONG_MODULE = 350
LONG_FUNCTION = 60
BROAD = {"Exception", "BaseException"}


def main() -> None:
    """Print the figures, then what is over the budget."""
    trees = {path: path.read_text("utf-8") for top in CODE for path in sorted((ROOT / top).rglob("*.py"))}
    modules = {str(path.relative_to(ROOT)): text.count("\n") for path, text in trees.items() if text.strip()}
    functions: dict[str, int] = {}
    handlers: list[ast.ExceptHandler] = []
    for path, text in trees.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                functions[f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"] = _lines(node)
            elif isinstance(node, ast.ExceptHandler):
                handlers.append(node)
    broad = sum(any(name in BROAD for name in _caught(handler)) for handler in handlers)
    print(f"modules    {_spread(list(modules.values()))}")
    print(f"functions  {_spread(list(functions.values()))}")
    print(f"handlers   {len(handlers)}, broad {broad} ({broad / max(len(handlers), 1):.1%})")
    for name, lines in _over(modules, LONG_MODULE) + _over(functions, LONG_FUNCTION):
        print(f"  {lines:5} lines  {name}")


def _lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _caught(handler: ast.ExceptHandler) -> Iterator[str]:
    """Yield the names a handler catches; a bare one catches everything."""
    if handler.type is None:
        yield "BaseException"
        return
    for node in ast.walk(handler.type):
        if isinstance(node, ast.Name):
            yield node.id


def _spread(lines: Sequence[int]) -> str:
    ordered = sorted(lines)
    half, most = ordered[len(ordered) // 2], ordered[len(ordered) * 9 // 10]
    return f"{len(ordered)}, lines median {half}, p90 {most}, longest {ordered[-1]}"


def _over(lines: dict[str, int], limit: int) -> list[tuple[str, int]]:
    return sorted(((name, n) for name, n in lines.items() if n > limit), key=lambda found: -found[1])


if __name__ == "__main__":
    main()
