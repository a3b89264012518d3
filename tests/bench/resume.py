#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What taking up a long chat costs, from the start of the program to the first token of the next
reply: with the snapshot of its cache on disk, beside evaluating all of it.

    resume.py CHINWAG MODEL [--tokens 4000] [--rounds 3] [-t 2]

Imports a made-up conversation into folders of its own. Each round resumes it twice (`--resume ID`,
plain lines, a pseudo-terminal), asks one thing and leaves: first without a snapshot, which writes
one, then with it. Prints the medians; the model's file and the snapshot are in the page cache.
"""
import argparse
import json
import os
import pathlib
import pty
import re
import select
import statistics
import subprocess
import sys
import tempfile
import time

WORDS = ("the tide went out and the lamp of the old house by the sea burned on while a boat came "
         "in with salt and letters for nobody so the keeper read them all to his cat").split()
WORDS_A_TURN, TOKENS_A_TURN = 100, 105


def conversation(n_tokens):
    """Turns of WORDS, each of which is one token to most vocabularies; the last is a reply."""
    at = 1
    messages = []
    for i in range(max(1, n_tokens // TOKENS_A_TURN // 2) * 2):
        words = []
        for _ in range(WORDS_A_TURN):
            at = (at * 7 + 3) % 9973
            words.append(WORDS[at % len(WORDS)])
        messages.append({"role": "assistant" if i % 2 else "user", "content": " ".join(words)})
    return {"messages": messages}


def follow(fd, pattern, seconds=120):
    """Read what the terminal shows until the pattern matches; None: until the program ends."""
    text, limit = "", time.monotonic() + seconds
    while pattern is None or not re.search(pattern, text):
        ready, _, _ = select.select([fd], [], [], max(0.0, limit - time.monotonic()))
        if not ready:
            sys.exit(f"resume: waited in vain for {pattern}: ...{text[-300:]!r}")
        try:
            piece = os.read(fd, 65536)
        except OSError:  # how a pseudo-terminal says that nobody is left
            piece = b""
        if not piece and pattern is None:
            return text
        if not piece:
            sys.exit(f"resume: the program ended: ...{text[-300:]!r}")
        text += piece.decode(errors="replace")
    return text


def take_up(a, chat, question, env):
    """Seconds from the start of the process to the first token of the answer."""
    command = [a.chinwag, "-m", a.model, "--plain", "--resume", chat, "-n", "4", "-t",
               str(a.threads), "-c", str(a.tokens + 1024), "--temp", "0"]
    begin = time.monotonic()
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(a.chinwag, command, env)
    os.write(fd, question.encode() + b"\n")
    follow(fd, rf"\] you: {question}\r\n(-- [^\n]*\n)*\[\d+")
    seconds = time.monotonic() - begin
    os.write(fd, b"\n/quit\n")
    follow(fd, None)
    os.waitpid(pid, 0)
    os.close(fd)
    return seconds


def main():
    ap = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("chinwag")
    ap.add_argument("model")
    ap.add_argument("--tokens", type=int, default=4000)
    ap.add_argument("--rounds", type=int, default=3)
    ap.add_argument("-t", "--threads", type=int, default=2)
    a = ap.parse_args()
    a.chinwag, a.model = os.path.abspath(a.chinwag), os.path.abspath(a.model)
    with tempfile.TemporaryDirectory() as home:
        env = {"PATH": os.environ["PATH"], "HOME": home, "TERM": "dumb"}
        path = os.path.join(home, "chat.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(conversation(a.tokens), f)
        chat = subprocess.run([a.chinwag, "import", path], env=env, text=True, check=True,
                              capture_output=True).stdout.split()[0]
        anew, resumed = [], []
        for turn in range(a.rounds):
            for snapshot in pathlib.Path(home).rglob("*.kv"):
                snapshot.unlink()
            anew.append(take_up(a, chat, f"And {2 * turn}", env))
            if not any(pathlib.Path(home).rglob("*.kv")):
                sys.exit("resume: no snapshot was written")
            resumed.append(take_up(a, chat, f"And {2 * turn + 1}", env))
        slow, fast = statistics.median(anew), statistics.median(resumed)
        print(f"evaluated anew {slow:8.3f} s   ({min(anew):.3f} .. {max(anew):.3f})")
        print(f"from snapshot  {fast:8.3f} s   ({min(resumed):.3f} .. {max(resumed):.3f})")
        print(f"ratio          {fast / slow:8.3f}")


if __name__ == "__main__":
    main()
