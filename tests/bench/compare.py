#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""chinwag's speed beside another engine's, on the same file and machine.

    compare.py CHINWAG MODEL.gguf [--peer CMD] [-p 512] [-n 64] [-d 0,4096] [-t 2] [-r 5]

Both take turns, a whole run each, so that what else the machine does meets both alike; each ratio is
of two runs side by side. Shows medians with the lowest and highest.

The peer is llama-bench where that is on the PATH, or any command (--peer) that takes MODEL -p -n -d
-t -r and prints {"rows":[{"depth":D,"prefill_tps":..,"decode_tps":..}]}.
"""
import argparse
import json
import shlex
import shutil
import statistics
import subprocess
import sys


def output_of(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"compare: {shlex.join(command)} ended with {done.returncode}")
    return json.loads(done.stdout)


def own_run(a):
    got = output_of([a.chinwag, "bench", "-m", a.model, "-p", str(a.p), "-n", str(a.n), "-d", a.d,
                     "-t", str(a.t), "-r", "1", "--json"])
    return rows_of(got)


def rows_of(got):
    return {(row["depth"], what): row[what + "_tps"]
            for row in got["rows"] for what in ("prefill", "decode") if row.get(what + "_tps")}


def peer_run(a):
    if a.peer:
        return rows_of(output_of(shlex.split(a.peer) + [
            a.model, "-p", str(a.p), "-n", str(a.n), "-d", a.d, "-t", str(a.t), "-r", "1"]))
    got = output_of(["llama-bench", "-m", a.model, "-p", str(a.p), "-n", str(a.n), "-d", a.d, "-t",
                     str(a.t), "-r", "1", "-o", "json"])
    return {(row.get("n_depth", 0), "prefill" if row["n_prompt"] else "decode"): row["avg_ts"]
            for row in got}


def spread(values):
    return (f"{statistics.median(values):10.2f} "
            f"{f'[{min(values):.2f} .. {max(values):.2f}]':24}")


def main():
    ap = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("chinwag")
    ap.add_argument("model")
    ap.add_argument("--peer")
    ap.add_argument("-p", type=int, default=512)
    ap.add_argument("-n", type=int, default=64)
    ap.add_argument("-d", default="0")
    ap.add_argument("-t", type=int, default=2)
    ap.add_argument("-r", type=int, default=5)
    a = ap.parse_args()
    if not a.peer and not shutil.which("llama-bench"):
        sys.exit("compare: llama-bench is not on the PATH; give another engine with --peer")
    own, peer, ratio = {}, {}, {}
    for turn in range(a.r):
        # Who goes first changes: the second finds the page cache as the first left it.
        first = own_run(a) if turn % 2 == 0 else None
        theirs = peer_run(a)
        ours = first or own_run(a)
        for key, value in ours.items():
            own.setdefault(key, []).append(value)
            if theirs.get(key):
                peer.setdefault(key, []).append(theirs[key])
                ratio.setdefault(key, []).append(value / theirs[key])
        print(f"turn {turn + 1} of {a.r} done", file=sys.stderr)
    print(f"{'':18} {'chinwag tok/s':>10} {'':21} {'peer tok/s':>10} {'':24} {'ratio':>10}")
    for key in sorted(own, key=lambda k: (k[1] != "prefill", k[0])):
        line = f"{key[1]:8} at {key[0]:6} {spread(own[key])}"
        if key in ratio:
            line += f" {spread(peer[key])} {spread(ratio[key])}"
        print(line.rstrip())


if __name__ == "__main__":
    main()
