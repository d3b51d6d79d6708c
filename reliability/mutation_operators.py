"""Mutants of a module: copies with one small mistake each, made on its syntax tree.

The mistakes: + for - and * for /, < for <= and for >=, a number one more or one less, a lost sign, a lost ``not``,
two swapped arguments, min for max, ``and`` for ``or``, a condition turned round, a statement left out. Annotations,
decorators, docstrings, imports and what an error says are left alone.
"""

from __future__ import annotations

import ast
import copy
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

_OPERATORS: dict[type, type] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
_COMPARISONS: dict[type, tuple[type, ...]] = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
}  # fmt: skip
_OPPOSITES = {"min": "max", "max": "min", "maximum": "minimum", "minimum": "maximum"}
# Expressions that only speak to people or to type checkers.
_SILENT = (ast.Raise, ast.Import, ast.ImportFrom, ast.JoinedStr, ast.Assert)


@dataclass(frozen=True)
class Mutant:
    """One mistake: where it is, and what it puts in the place of what; which of its node's, of which of the nodes."""

    line: int
    column: int
    change: str
    node: int
    number: int


def mutants(text: str) -> list[Mutant]:
    """Every mutant of a module's text, in the order of its lines."""
    found = [
        Mutant(
            getattr(node, "lineno", 0), getattr(node, "col_offset", 0), f"{_shown(node)} → {_shown(other)}", place, n
        )
        for place, node in enumerate(_nodes(ast.parse(text)))
        for n, other in enumerate(_mistakes(node))
    ]
    return sorted(found, key=lambda mutant: (mutant.line, mutant.column, mutant.change))


def mutated(text: str, mutant: Mutant) -> str:
    """The module's text with the mistake in it."""
    tree = ast.parse(text)
    target = next(itertools.islice(_nodes(tree), mutant.node, None))
    mistake = next(itertools.islice(_mistakes(target), mutant.number, None))
    return ast.unparse(ast.fix_missing_locations(_Replace(target, mistake).visit(tree)))


def _shown(node: ast.AST) -> str:
    return f"if {ast.unparse(node.test)}" if isinstance(node, ast.If) else ast.unparse(node)


def _nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that may be mutated, parents first."""
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, _SILENT):
                yield from _nodes(child)


def _mistakes(node: ast.AST) -> Iterator[ast.AST]:
    """What could stand wrongly in the place of ``node``; the node itself is left as it is."""
    if isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in _OPERATORS:
        yield _with(node, op=_OPERATORS[type(node.op)]())
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        for other in _COMPARISONS[type(node.ops[0])]:
            yield _with(node, ops=[other()])
    if isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield ast.Constant(not node.value)
        elif isinstance(node.value, int | float):
            yield ast.Constant(node.value + 1)
            yield ast.Constant(node.value - 1)
    if isinstance(node, ast.UnaryOp):
        yield node.operand
    if isinstance(node, ast.BoolOp):
        yield _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
    if isinstance(node, ast.If | ast.IfExp) and not isinstance(node.test, ast.Compare | ast.UnaryOp):
        yield _with(node, test=ast.UnaryOp(ast.Not(), node.test))
    if isinstance(node, ast.Call):
        yield from _wrong_calls(node)
    if isinstance(node, ast.AugAssign) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        yield ast.Pass()


def _wrong_calls(node: ast.Call) -> Iterator[ast.AST]:
    name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
    first = node.args[:2]
    if name in _OPPOSITES:
        opposite = copy.deepcopy(node.func)
        setattr(opposite, "id" if isinstance(opposite, ast.Name) else "attr", _OPPOSITES[name])
        yield _with(node, func=opposite)
    elif len(first) == 2 and ast.dump(first[0]) != ast.dump(first[1]) and not isinstance(first[1], ast.Starred):
        yield _with(node, args=[first[1], first[0], *node.args[2:]])
    for place, keyword in enumerate(node.keywords):
        if keyword.arg in _OPPOSITES:
            turned = ast.keyword(_OPPOSITES[keyword.arg], keyword.value)
            yield _with(node, keywords=[*node.keywords[:place], turned, *node.keywords[place + 1 :]])


def _with(node: ast.AST, **fields: object) -> ast.AST:
    """The node with some fields changed; its other children are shared."""
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


class _Replace(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self.new if node is self.old else self.generic_visit(node)
