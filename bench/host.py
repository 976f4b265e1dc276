#!/usr/bin/env python3
"""Times operators on this CPU, beside another engine if one is given, and keeps the result.

  bench/host.py                                   gated_delta_rule, simple_gla, linear_attn, this build
  bench/host.py --peer './ggml_bench --json'      the same beside a peer, in one run, round by round

A peer is a command that prints JSON lines {"engine", "compiler", "op", "mode", "threads", "ms"}, with "dtype" (default
f32) if it has several; it is run once a round, alternating with latile, and its median is taken. Several --peer options
are run in turn. Writes bench/results/<date>-<host>.json: commit, hardware, shapes, versions, medians, ratios.
Needs Python 3 and nothing else.
"""
import argparse
import datetime
import json
import os
import platform
import re
import shlex
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
KEY = ("engine", "compiler", "op", "mode", "dtype", "threads")


def lines_of(command, shown):
    """The JSON lines that a command prints."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{shown}: exit code {done.returncode}: {done.stderr.strip()[-400:]}")
    rows = []
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            rows.append(json.loads(line))
    if not rows:
        sys.exit(f"{shown}: printed no JSON line")
    return rows


def command_output(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def hardware():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        text = file.read()
    name = re.search(r"^model name\s*: (.*)$", text, re.M)
    flags = re.search(r"^flags\s*: (.*)$", text, re.M)
    wanted = ("avx2", "fma", "avx512f", "avx512_bf16", "amx_bf16")
    return {
        "cpu": name.group(1) if name else platform.processor(),
        "cpus": len(os.sched_getaffinity(0)),
        "features": [f for f in wanted if flags and f in flags.group(1).split()],
        "system": platform.platform(),
    }


def gather(samples, rows, peer):
    for row in rows:
        row.setdefault("dtype", "f32")
        missing = [field for field in KEY + ("ms",) if field not in row]
        if missing:
            sys.exit(f"a line lacks {', '.join(missing)}: {json.dumps(row)}")
        entry = samples.setdefault(tuple(row[field] for field in KEY), {"peer": peer, "ms": [], "last": row})
        entry["ms"].append(row["ms"])
        entry["last"] = row


def summarise(samples):
    """A row for each measurement; a peer's best compiler counts."""
    best = {}
    for key, entry in samples.items():
        if entry["peer"]:
            engine, _, op, mode, dtype, threads = key
            ms = statistics.median(entry["ms"])
            slot = (op, mode, threads)
            best.setdefault(slot, {}).setdefault((engine, dtype), ms)
            best[slot][(engine, dtype)] = min(best[slot][(engine, dtype)], ms)
    rows = []
    for key, entry in samples.items():
        row = dict(zip(KEY, key))
        row["ms"] = statistics.median(entry["ms"])
        row["rounds_ms"] = entry["ms"]
        for field in ("shape", "floor", "floor_ms", "best_ms", "runs"):
            if field in entry["last"]:
                row[field] = entry["last"][field]
        if "floor_ms" in row:
            row["ratio_to_floor"] = row["ms"] / row["floor_ms"]
        if not entry["peer"]:
            row["times_faster_than"] = {
                f"{engine} {dtype}": ms / row["ms"]
                for (engine, dtype), ms in best.get((row["op"], row["mode"], row["threads"]), {}).items()
            }
        rows.append(row)
    return sorted(rows, key=lambda r: [str(r[field]) for field in ("op", "mode", "dtype", "threads", "engine")])


def show(rows):
    for row in rows:
        text = f"{row['op']:18} {row['mode']:8} {row['dtype']:5} {row['threads']:>2} threads  {row['engine']:16} {row['ms']:9.3f} ms"
        if "ratio_to_floor" in row:
            text += f"  {row['ratio_to_floor']:5.2f} x floor"
        for peer, times in row.get("times_faster_than", {}).items():
            text += f"  {times:.2f} x {peer}"
        print(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("operators", nargs="*", default=["gated_delta_rule", "simple_gla", "linear_attn"])
    parser.add_argument("--latile", default=os.path.join(ROOT, "build", "bin", "latile"), help="the command to time")
    parser.add_argument("--peer", action="append", default=[], help="a command that prints JSON lines")
    parser.add_argument("--rounds", type=int, default=5, help="default 5; medians are taken over them")
    parser.add_argument("--seconds", type=float, default=1, help="for each of latile's measurements in a round")
    parser.add_argument("--arguments", default="", help="more for `latile bench`, such as '--mode prefill --threads 1'")
    parser.add_argument("--note", default="", help="kept in the result, such as the peer's commit")
    parser.add_argument("--output", help="default bench/results/<date>-<host>.json")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")

    samples = {}
    for number in range(options.rounds):
        for op in options.operators:
            print(f"round {number + 1} of {options.rounds}: {op}", file=sys.stderr)
            command = [options.latile, "bench", op, "--json", "--seconds", str(options.seconds)]
            gather(samples, lines_of(command + shlex.split(options.arguments), f"latile bench {op}"), False)
            for peer in options.peer:
                print(f"round {number + 1} of {options.rounds}: {peer}", file=sys.stderr)
                if op == options.operators[0] or "{op}" in peer:
                    gather(samples, lines_of(shlex.split(peer.replace("{op}", op)), peer), True)

    rows = summarise(samples)
    show(rows)
    now = datetime.datetime.now(datetime.timezone.utc)
    result = {
        "date": now.isoformat(timespec="seconds"),
        "commit": command_output("git", "rev-parse", "HEAD"),
        "changed_files": len(command_output("git", "status", "--porcelain", "--untracked-files=no").splitlines()),
        "version": command_output(options.latile, "--version"),
        "hardware": hardware(),
        "peers": options.peer,
        "note": options.note,
        "rounds": options.rounds,
        "rows": rows,
    }
    host = re.sub(r"[^A-Za-z0-9]+", "-", platform.node()).strip("-") or "host"
    path = options.output or os.path.join(ROOT, "bench", "results", f"{now:%Y-%m-%d}-{host}.json")
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
        file.write("\n")
    os.replace(path + ".new", path)
    print(f"written to {path}")


if __name__ == "__main__":
    main()
