#!/usr/bin/env python3
"""Times flash-linear-attention's kernels on the GPU of this machine, as the peer of `latile bench --device cuda`.

    bench/fla.py --path FOLDER_WITH_fla [--op NAME...] [--shape BxTxHxD...] [--out FILE]

GPU time: median of replays of a CUDA graph that holds one call. Call time: wall time of one call with the GPU idle
before it. First call: wall time of the first call in this process (compilation and autotuning, unless cached). One
JSON row a measurement: op, mode, B, T, H, K, V, dtype, gpu_ms, call_us, first_s, peer, device.
"""
import argparse
import json
import statistics
import sys
import time


def operators(torch, functional):
    """Name -> (module, function, inputs of a shape, keyword arguments). Gates as the peer's own benchmark draws them."""

    def random(*shape, dtype=torch.bfloat16):
        return torch.randn(*shape, device="cuda", dtype=dtype)

    def qkv(B, T, H, D):
        return {"q": random(B, T, H, D), "k": functional.normalize(random(B, T, H, D).float(), dim=-1).bfloat16(),
                "v": random(B, T, H, D)}

    def head_gate(B, T, H, D):
        return functional.logsigmoid(random(B, T, H, dtype=torch.float32))

    def beta(B, T, H, D):
        return random(B, T, H).sigmoid()

    def channel_gate(B, T, H, D):
        return functional.logsigmoid(random(B, T, H, D)).clamp_min(-5)

    def rwkv7(B, T, H, D):
        a = functional.normalize(random(B, T, H, D).float(), dim=-1)
        return {"r": random(B, T, H, D), "w": (-0.6065306597126334 * random(B, T, H, D).sigmoid()).clamp(-0.6065306, -1e-6),
                "k": random(B, T, H, D), "v": random(B, T, H, D), "a": (-a).bfloat16(),
                "b": (a * random(B, T, H, D).float().sigmoid()).bfloat16()}

    return {
        "simple_gla": ("simple_gla", "chunk_simple_gla", lambda *s: {**qkv(*s), "g": head_gate(*s)}, {}),
        "gla": ("gla", "chunk_gla", lambda *s: {**qkv(*s), "g": channel_gate(*s)}, {}),
        "delta_rule": ("delta_rule", "chunk_delta_rule", lambda *s: {**qkv(*s), "beta": beta(*s)}, {}),
        "gated_delta_rule": ("gated_delta_rule", "chunk_gated_delta_rule",
                             lambda *s: {**qkv(*s), "g": head_gate(*s), "beta": beta(*s)},
                             {"use_qk_l2norm_in_kernel": True}),
        "kda": ("kda", "chunk_kda", lambda *s: {**qkv(*s), "g": channel_gate(*s), "beta": beta(*s)},
                {"use_qk_l2norm_in_kernel": True, "safe_gate": True, "lower_bound": -5.0}),
        "rwkv7": ("rwkv7", "chunk_rwkv7", rwkv7, {"safe_gate": True, "chunk_size": 64}),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--path", required=True)
    parser.add_argument("--op", action="append")
    parser.add_argument("--shape", action="append")
    parser.add_argument("--out")
    options = parser.parse_args()
    sys.path.insert(0, options.path)
    import importlib

    import torch
    import torch.nn.functional as functional

    rows = []
    for name, (module, function, inputs, keywords) in operators(torch, functional).items():
        if options.op and name not in options.op:
            continue
        call = getattr(importlib.import_module("fla.ops." + module), function)
        for shape in options.shape or ["4x2048x16x128", "2x16384x16x128"]:
            B, T, H, D = (int(part) for part in shape.split("x"))
            tensors = inputs(B, T, H, D)
            row = {"op": name, "mode": "prefill", "B": B, "T": T, "H": H, "K": D, "V": D, "dtype": "bfloat16",
                   "peer": "fla", "device": torch.cuda.get_device_name()}
            try:
                with torch.no_grad():
                    row.update(measure(torch, lambda: call(**tensors, **keywords)))
            except Exception as error:  # a peer that fails on this machine is a row too
                row["error"] = f"{type(error).__name__}: {str(error)[:200]}"
            rows.append(row)
            print(json.dumps(row), flush=True)
    if options.out:
        with open(options.out, "w") as file:
            json.dump(rows, file, indent=1)


def measure(torch, call):
    start = time.perf_counter()
    call()
    torch.cuda.synchronize()
    first = time.perf_counter() - start
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    wall = []
    for _ in range(20):
        torch.cuda.synchronize()
        start = time.perf_counter()
        call()
        wall.append(time.perf_counter() - start)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    for _ in range(3):
        graph.replay()
    gpu = []
    for _ in range(30):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        gpu.append(begin.elapsed_time(end))
    return {"gpu_ms": statistics.median(gpu), "call_us": 1e6 * statistics.median(wall), "first_s": first}


if __name__ == "__main__":
    main()
