#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""chinwag's speed beside another engine's, on the same files, machine and number of threads.

    compare.py CHINWAG [--peer CMD] [--rounds 5] [--rows prefill,decode,...] [--isa NAME] [-t 2]
               [--smollm2 FILE] [--f16 FILE] [--gemma FILE] [--qwen FILE] [--json FILE]

Both take turns, one run each, and who goes first changes, so that what else the machine does meets
both alike. Each ratio is of two runs side by side; medians with the lowest and highest. Prints a
table in Markdown. A quiet machine needs about ten minutes for all rows and five rounds.

rows:
    smollm2   SmolLM2: a prompt of 512 tokens, decoding at depth 0 and 4,096
    f16       the same prompt with the model as F16 (to_f16.py makes the file)
    gemma     Gemma 3 270M: prompt and decoding
    qwen      Qwen2.5-Coder 1.5B: prompt and decoding
    start     process start to the first token of a 10-token prompt, context 4,096, files in the page
              cache: SmolLM2 and Qwen; of the peer without its interpreter's start and its warm-up
    memory    peak of resident memory after 512 prompt tokens and 64 more, context 4,096, SmolLM2;
              of the peer without its interpreter
    busy      decoding beside one busy process, as a share of each engine's own quiet speed

Models not given are looked for under the catalogue's names in the models directory; rows whose file
is not there are left out, which is said.

The peer is llama-bench where that is on the PATH (no start, no memory), or any command (--peer) that
    CMD MODEL -p N -n N -d LIST -t N -r N    prints {"rows":[{"depth":D,"prefill_tps":..,"decode_tps":..}]}
    CMD MODEL -t N --first-token             prints {"s":..,"mib":..} of one fresh process
"""
import argparse
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import time

ROWS = ["smollm2", "f16", "gemma", "qwen", "start", "memory", "busy"]
MODELS = {"smollm2": "SmolLM2-135M-Instruct.Q4_1.gguf",
          "f16": "SmolLM2-135M-Instruct.F16.gguf",
          "gemma": "gemma-3-270m.Q4_K_M.gguf",
          "qwen": "Qwen2.5-Coder-1.5B-Instruct.Q4_K_M.gguf"}
TITLES = {"smollm2": "SmolLM2-135M Q4_1", "f16": "SmolLM2-135M F16",
          "gemma": "Gemma3-270M Q4_K_M", "qwen": "Qwen2.5-Coder-1.5B Q4_K_M"}


def output_of(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          check=False)
    if done.returncode != 0:
        sys.exit(f"compare: {shlex.join(command)} ended with {done.returncode}:\n{done.stderr}")
    return json.loads(done.stdout)


class Chinwag:
    def __init__(self, a):
        self.program, self.engine = a.chinwag, ["-t", str(a.threads)]
        if a.isa:
            self.engine += ["--isa", a.isa]

    def speeds(self, model, prompt, tokens, depths):
        got = output_of([self.program, "bench", "-m", model, "--rows", "--json", "-r", "1", "-p",
                         str(prompt), "-n", str(tokens), "-d", depths] + self.engine)
        return {(row["depth"], what): row[what + "_tps"] for row in got["rows"]
                for what in ("prefill", "decode")}

    def generate(self, model, prompt, tokens):
        """Seconds to the first byte, which follows the last token, and peak MiB of one process."""
        ids = ",".join(str(100 + 7 * i % 1000) for i in range(prompt))
        begin = time.perf_counter()
        child = subprocess.Popen([self.program, "generate", "-m", model, "--tokens", ids, "-n",
                                  str(tokens), "-c", "4096", "--ignore-eos"] + self.engine,
                                 stdout=subprocess.PIPE, bufsize=0)
        first = child.stdout.read(1)
        seconds = time.perf_counter() - begin
        child.stdout.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = status
        if status != 0 or not first:
            sys.exit("compare: chinwag generate failed")
        return seconds, usage.ru_maxrss / 1024

    def start(self, model):
        return self.generate(model, 10, 1)[0]

    def memory(self, model):
        return self.generate(model, 512, 64)[1]


class Peer:
    def __init__(self, a):
        self.threads = ["-t", str(a.threads)]
        self.command = shlex.split(a.peer) if a.peer else None
        if not self.command and not shutil.which("llama-bench"):
            sys.exit("compare: llama-bench is not on the PATH; give another engine with --peer")

    def speeds(self, model, prompt, tokens, depths):
        sizes = ["-p", str(prompt), "-n", str(tokens), "-d", depths, "-r", "1"] + self.threads
        if self.command:
            got = output_of(self.command + [model] + sizes)
            return {(row["depth"], what): row[what + "_tps"] for row in got["rows"]
                    for what in ("prefill", "decode") if row.get(what + "_tps")}
        got = output_of(["llama-bench", "-m", model, "-o", "json"] + sizes)
        return {(row.get("n_depth", 0), "prefill" if row["n_prompt"] else "decode"): row["avg_ts"]
                for row in got}

    def fresh(self, model):
        return output_of(self.command + [model, "--first-token"] + self.threads)

    def start(self, model):
        return self.fresh(model)["s"]

    def memory(self, model):
        return self.fresh(model)["mib"]


class Table:
    """Values of both engines by row; each round adds one of each."""

    def __init__(self):
        self.rows = {}

    def add(self, title, unit, own, peer, faster_is_more=True):
        row = self.rows.setdefault(title, {"unit": unit, "own": [], "peer": [], "ratio": []})
        row["own"].append(own)
        row["peer"].append(peer)
        row["ratio"].append(own / peer if faster_is_more else peer / own)

    def print(self):
        print("| | chinwag | peer | ratio | lowest .. highest |")
        print("|---|--:|--:|--:|--:|")
        for title, row in self.rows.items():
            digits = 3 if row["unit"] == "s" else 2 if row["unit"] == "" else 1
            own, peer = statistics.median(row["own"]), statistics.median(row["peer"])
            ratio = row["ratio"]
            unit = f", {row['unit']}" if row["unit"] else ""
            print(f"| {title}{unit} | {own:.{digits}f} | {peer:.{digits}f} | "
                  f"{statistics.median(ratio):.2f} | {min(ratio):.2f} .. {max(ratio):.2f} |")


def both(turn, own, peer):
    """Results of the two calls, in an order that changes from turn to turn."""
    if turn % 2 == 0:
        ours = own()
        return ours, peer()
    theirs = peer()
    return own(), theirs


def speed_row(a, own, peer, table, turn, name, path):
    depths = "0,4096" if name == "smollm2" else "0"
    prompt, tokens = (512, a.tokens if name != "f16" else 1)
    ours, theirs = both(turn, lambda: own.speeds(path, prompt, tokens, depths),
                        lambda: peer.speeds(path, prompt, tokens, depths))
    for key in [(0, "prefill"), (0, "decode"), (4096, "decode")]:
        if key in ours and key in theirs and not (name == "f16" and key[1] == "decode"):
            what = "prompt of 512" if key[1] == "prefill" else f"decoding at {key[0]:,}"
            table.add(f"{TITLES[name]}: {what}", "tokens/s", ours[key], theirs[key])


def busy_row(a, own, peer, table, turn, path):
    """The share of its quiet speed that decoding keeps beside one busy process."""
    def share(engine):
        quiet = engine.speeds(path, 1, a.tokens, "0")[(0, "decode")]
        other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        try:
            return engine.speeds(path, 1, a.tokens, "0")[(0, "decode")] / quiet
        finally:
            other.kill()
            other.wait()
    ours, theirs = both(turn, lambda: share(own), lambda: share(peer))
    table.add(f"{TITLES['smollm2']}: of its decoding speed kept beside a busy process", "", ours,
              theirs)


def find_models(a):
    data = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    found = {}
    for name, file in MODELS.items():
        path = getattr(a, name) or os.path.join(data, "chinwag", "models", file)
        if os.path.exists(path):
            found[name] = path
        elif getattr(a, name):
            sys.exit(f"compare: {path} is not there")
    return found


def main():
    ap = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("chinwag")
    ap.add_argument("--peer")
    ap.add_argument("--rows", default=",".join(ROWS))
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--tokens", type=int, default=48, help="tokens of a decode")
    ap.add_argument("--isa")
    ap.add_argument("-t", "--threads", type=int, default=2)
    ap.add_argument("--json", help="write all values to this file")
    for name in MODELS:
        ap.add_argument("--" + name)
    a = ap.parse_args()
    asked = a.rows.split(",")
    for row in asked:
        if row not in ROWS:
            sys.exit(f"compare: {row}: the rows are {', '.join(ROWS)}")
    if a.rounds < 1 or a.tokens < 1:
        sys.exit("compare: there must be a round and a token at least")
    own, peer, models, table = Chinwag(a), Peer(a), find_models(a), Table()
    jobs = []  # (what it is, function of the turn)
    for row in asked:
        files = {"start": ["smollm2", "qwen"], "memory": ["smollm2"],
                 "busy": ["smollm2"]}.get(row, [row])
        for name in files:
            if name not in models:
                print(f"compare: {row}: left out, no {MODELS[name]}", file=sys.stderr)
                continue
            if row in ("start", "memory") and not peer.command:
                print(f"compare: {row}: left out, llama-bench cannot tell", file=sys.stderr)
                continue
            path = models[name]
            if row == "start":
                jobs.append((f"start, {name}", lambda turn, p=path, n=name: table.add(
                    f"{TITLES[n]}: start to first token", "s",
                    *both(turn, lambda: own.start(p), lambda: peer.start(p)), False)))
            elif row == "memory":
                jobs.append(("memory", lambda turn, p=path, n=name: table.add(
                    f"{TITLES[n]}: resident at most", "MiB",
                    *both(turn, lambda: own.memory(p), lambda: peer.memory(p)))))
            elif row == "busy":
                jobs.append(("busy", lambda turn, p=path: busy_row(a, own, peer, table, turn, p)))
            else:
                jobs.append((name, lambda turn, p=path, n=name: speed_row(
                    a, own, peer, table, turn, n, p)))
    if not jobs:
        sys.exit("compare: nothing to measure")
    for name, path in models.items():
        with open(path, "rb") as f:  # into the page cache
            while f.read(1 << 24):
                pass
    for turn in range(a.rounds):
        for what, job in jobs:
            begin = time.perf_counter()
            job(turn)
            print(f"round {turn + 1} of {a.rounds}: {what}, {time.perf_counter() - begin:.0f} s",
                  file=sys.stderr)
    table.print()
    if a.json:
        with open(a.json, "w", encoding="utf-8") as f:
            json.dump(table.rows, f, indent=1)


if __name__ == "__main__":
    main()
