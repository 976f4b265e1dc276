#!/usr/bin/env python3
"""Checks and times operators on a machine with a GPU, and keeps the result. Needs Python 3 and the command, no more.

  bench/gpu.py --latile build/bin/latile-portable gated_delta_rule simple_gla
  bench/gpu.py --checks-only --quick          every operator's quick list
  bench/gpu.py --peer-rows fla.json …         beside the rows of bench/fla.py, measured in the same session

Each step's output goes to a file of its own in --output: check-OP.json and bench.json, written when the step ends, so
that a run that is stopped keeps what it has. A row of bench.json has op, mode, B, T, H, K, V, dtype, gpu_ms, call_us,
floor_ms, commit, device, and with --peer-rows peer and peer_gpu_ms. Exit code: 1 if a check failed or a step broke.
"""
import argparse
import json
import os
import platform
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SHAPE = ("op", "mode", "B", "T", "H", "K", "V", "dtype")


def output_of(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def keep(folder, name, value):
    path = os.path.join(folder, name)
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1)
        file.write("\n")
    os.replace(path + ".new", path)


def run(command, seconds):
    """Exit code, standard output and the end of standard error; a step that takes too long has the code 124."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
        return done.returncode, done.stdout, done.stderr.strip()[-600:]
    except subprocess.TimeoutExpired as stopped:
        text = stopped.stdout or b""
        return 124, text.decode() if isinstance(text, bytes) else text, f"stopped after {seconds} s"


def check(options, op):
    command = [options.latile, "check", op, "--device", options.device, "--json"]
    command += ["--quick"] if options.quick else []
    command += ["--dtype", options.check_dtype] if options.check_dtype else []
    begun = time.time()
    code, text, errors = run(command, options.timeout)
    took = time.time() - begun
    try:
        result = json.loads(text)
    except ValueError:
        print(f"check {op}: exit code {code} after {took:.0f} s: {errors}")
        return False
    keep(options.output, f"check-{op}.json", result)
    cases = result["cases"]
    print(f"check {op}: {len(cases) - result['failed']} of {len(cases)} cases passed in {took:.0f} s")
    for case in [c for c in cases if not c["passed"]][: options.show]:
        worst = max(case["tensors"], key=lambda t: (t["error"] or float("inf")) / t["allowed"], default=None)
        why = case.get("failure") or f"{worst['name']}: error {worst['error']}, allowed {worst['allowed']:.2e}"
        print(f"  {case['dtype']} {case['case']}: {case['data']}: {why}")
    return result["failed"] == 0


def rows_of(options, op, mode, shapes):
    command = [options.latile, "bench", op, "--device", options.device, "--json", "--mode", mode, "--dtype", options.dtype,
               "--seconds", str(options.seconds), "--commit", options.commit]
    command += ["--shape", shapes] if shapes else []
    for option in options.option:
        command += ["--option", option]
    code, text, errors = run(command, options.timeout)
    if code != 0:
        print(f"bench {op} {mode}: exit code {code}: {errors}")
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")], code == 0


def bench(options, operators, peers):
    rows, fine = [], True
    for op in operators:
        for mode, shapes in (("prefill", options.shapes), ("step", options.step_shapes)):
            if mode not in options.modes:
                continue
            found, good = rows_of(options, op, mode, shapes)
            fine &= good
            for row in found:
                peer = peers.get(tuple(row[field] for field in SHAPE))
                if peer:
                    row["peer"], row["peer_gpu_ms"] = peer.get("peer", "peer"), peer["gpu_ms"]
                    row["ratio_to_peer"] = row["gpu_ms"] / peer["gpu_ms"]
                beside = f"  {row['ratio_to_peer']:.2f} of {row['peer']}" if peer else ""
                print(f"{op:20} {mode:8} {row['B']}x{row['T']}x{row['H']}x{row['K']}x{row['V']} {row['dtype']}: "
                      f"{row['gpu_ms']:.4f} ms, floor {row['floor_ms']:.4f}, call {row['call_us']:.1f} us{beside}")
            rows += found
            keep(options.output, "bench.json", rows)
            sys.stdout.flush()
    return rows, fine


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("operators", nargs="*", help="default all that the command lists")
    parser.add_argument("--latile", default=os.path.join(ROOT, "build", "bin", "latile"))
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--output", default=os.path.join(ROOT, "bench", "results", "gpu"))
    parser.add_argument("--commit", default=output_of("git", "rev-parse", "HEAD"), help="default git's HEAD")
    parser.add_argument("--checks-only", action="store_true")
    parser.add_argument("--bench-only", action="store_true")
    parser.add_argument("--quick", action="store_true", help="the quick list of cases")
    parser.add_argument("--check-dtype", default="", help="types to check, such as f32,bf16; default all")
    parser.add_argument("--show", type=int, default=5, help="failed cases of an operator that are printed")
    parser.add_argument("--dtype", default="bf16", help="types to time")
    parser.add_argument("--modes", default="prefill,step")
    parser.add_argument("--shapes", default="", help="of prefill: BxTxHxK[xV],…; default those of the command")
    parser.add_argument("--step-shapes", default="", help="of step, likewise")
    parser.add_argument("--option", action="append", default=[], help="NAME=VALUE of the operators that are timed")
    parser.add_argument("--seconds", type=float, default=0.5, help="of each measurement")
    parser.add_argument("--timeout", type=float, default=300, help="seconds for one step")
    parser.add_argument("--peer-rows", default="", help="rows that bench/fla.py wrote")
    options = parser.parse_args()
    options.modes = options.modes.split(",")
    os.makedirs(options.output, exist_ok=True)

    operators = options.operators
    if not operators:
        code, text, errors = run([options.latile, "list", "--json"], 60)
        if code != 0:
            sys.exit(f"latile list: exit code {code}: {errors}")
        operators = [row["name"] for row in json.loads(text)]
    code, text, errors = run([options.latile, "doctor", "--json"], 120)
    doctor = json.loads(text) if text.startswith("{") else {"doctor": errors}
    print(f"cuda: {doctor.get('cuda', doctor)}")
    keep(options.output, "machine.json", {"doctor": doctor, "system": platform.platform(), "commit": options.commit,
                                          "cpus": os.cpu_count()})
    fine = True
    if not options.bench_only:
        for op in operators:
            fine &= check(options, op)
            sys.stdout.flush()
    if not options.checks_only:
        peers = {}
        if options.peer_rows:
            with open(options.peer_rows, encoding="utf-8") as file:
                listed = json.load(file)
            short = {"bfloat16": "bf16", "float16": "f16", "float32": "f32"}
            for row in listed["rows"] if isinstance(listed, dict) else listed:
                if "gpu_ms" in row:
                    row["dtype"] = short.get(row["dtype"], row["dtype"])
                    peers[tuple(row[field] for field in SHAPE)] = row
        fine &= bench(options, operators, peers)[1]
    print(f"written to {options.output}")
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
