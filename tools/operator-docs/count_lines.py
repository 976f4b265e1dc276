#!/usr/bin/env python3
"""Counts the code lines of each operator of flash-linear-attention, for the column `code lines` of
docs/operators/fla.csv.

    tools/operator-docs/count_lines.py CHECKOUT [--write docs/operators/fla.csv]

CHECKOUT is a working tree or a bare repository of github.com/fla-org/flash-linear-attention. Counted is each line of
the operator's own folder under fla/ops that holds code: neither blank, nor a comment, nor part of a docstring. Left out
are folders named backends, which serve other compilers, and what the folders share (fla/ops/common, fla/ops/utils).
Norms, convolution and token shift are modules there: counted are the files that hold their kernels and calls.
"""
import argparse
import csv
import io
import pathlib
import subprocess
import tokenize

FOLDERS = {"dplr": ["ops/generalized_delta_rule/dplr"], "iplr": ["ops/generalized_delta_rule/iplr"],
           "l2norm": ["modules/l2norm.py"], "rms_norm": ["modules/fused_norm_gate.py"],
           "causal_conv1d": ["modules/conv/causal_conv1d.py", "modules/conv/triton"],
           "token_shift": ["modules/token_shift.py"]}
SILENT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING,
          tokenize.ENDMARKER}


def code_lines(text):
    """Lines that a token of code touches; a string that is a statement of its own is a docstring."""
    lines = set()
    statement = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in SILENT:
            statement.append(token)
        if token.type in (tokenize.NEWLINE, tokenize.ENDMARKER):
            if any(t.type != tokenize.STRING for t in statement):
                for t in statement:
                    lines.update(range(t.start[0], t.end[0] + 1))
            statement = []
    return len(lines)


def files(checkout, folder):
    """Path and text of each Python file at or below fla/FOLDER."""
    base = f"fla/{folder}"
    if (checkout / base).exists():
        paths = [checkout / base] if base.endswith(".py") else sorted((checkout / base).rglob("*.py"))
        for path in paths:
            yield str(path.relative_to(checkout)), path.read_text()
        return
    git = ["git", f"--git-dir={checkout}"]
    names = subprocess.run(git + ["ls-tree", "-r", "--name-only", "HEAD", base], check=True, capture_output=True,
                           text=True).stdout.split("\n")
    for name in names:
        if name.endswith(".py"):
            yield name, subprocess.run(git + ["show", f"HEAD:{name}"], check=True, capture_output=True,
                                       text=True).stdout


def count(checkout, operator):
    return sum(code_lines(text) for folder in FOLDERS.get(operator, [f"ops/{operator}"])
               for path, text in files(checkout, folder) if "backends" not in pathlib.PurePath(path).parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=pathlib.Path)
    parser.add_argument("--write", type=pathlib.Path, default=None, help="the table whose column is renewed")
    options = parser.parse_args()
    table = options.write or pathlib.Path(__file__).parents[2] / "docs/operators/fla.csv"
    with open(table, newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["code lines"] = count(options.checkout, row["operator"])
        print(row["operator"], row["code lines"])
    if options.write:
        with open(table, "w", newline="") as file:
            writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
