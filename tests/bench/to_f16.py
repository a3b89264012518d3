#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write a copy of a GGUF file whose matrices are F16: for measuring float files.

    to_f16.py IN.gguf OUT.gguf

Matrices (two dimensions and more) of F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K and Q6_K
become F16, vectors stay as they are. Plain Python, no packages: about a minute for 135 million
weights. Layouts: the GGUF specification and ggml's block structures (ggml-common.h).
"""
import mmap
import struct
import sys

SCALAR_BYTES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
STRING, ARRAY = 8, 9
F32, F16, BF16 = 0, 1, 30
HALVES_32 = struct.Struct("<32e")
HALVES_16 = struct.Struct("<16e")
BYTES_32 = struct.Struct("<32b")


def half(data, at):
    return struct.unpack_from("<e", data, at)[0]


def interleave(table, packed):
    """32 values of a block of 4-bit codes: the low nibbles first. table: 16 packed halves."""
    values = [table[i:i + 2] for i in range(0, 32, 2)]
    return b"".join([values[b & 15] for b in packed] + [values[b >> 4] for b in packed])


def q4_0(b, at):
    d = half(b, at)
    return interleave(HALVES_16.pack(*[d * (i - 8) for i in range(16)]), b[at + 2:at + 18])


def q4_1(b, at):
    d, m = struct.unpack_from("<2e", b, at)
    return interleave(HALVES_16.pack(*[d * i + m for i in range(16)]), b[at + 4:at + 20])


def codes_5(high, packed):
    return ([(b & 15) | (high >> i & 1) << 4 for i, b in enumerate(packed)] +
            [(b >> 4) | (high >> (i + 16) & 1) << 4 for i, b in enumerate(packed)])


def q5_0(b, at):
    d, high = struct.unpack_from("<eI", b, at)
    return HALVES_32.pack(*[d * (q - 16) for q in codes_5(high, b[at + 6:at + 22])])


def q5_1(b, at):
    d, m, high = struct.unpack_from("<2eI", b, at)
    return HALVES_32.pack(*[d * q + m for q in codes_5(high, b[at + 8:at + 24])])


def q8_0(b, at):
    d = half(b, at)
    return HALVES_32.pack(*[d * q for q in BYTES_32.unpack_from(b, at + 2)])


def k_scales(s):
    """The eight 6-bit scales and minima of a Q4_K or Q5_K super-block."""
    scales = [s[j] & 63 for j in range(4)] + [(s[j + 8] & 15) | (s[j] >> 6) << 4 for j in range(4)]
    minima = [s[j + 4] & 63 for j in range(4)] + [(s[j + 8] >> 4) | (s[j + 4] >> 6) << 4
                                                  for j in range(4)]
    return scales, minima


def q45_k(b, at, five):
    d, dmin = struct.unpack_from("<2e", b, at)
    scales, minima = k_scales(b[at + 4:at + 16])
    high = b[at + 16:at + 48] if five else bytes(32)
    codes = at + (48 if five else 16)
    out = []
    for j in range(8):
        chunk = b[codes + j // 2 * 32:codes + j // 2 * 32 + 32]
        shift = 4 * (j % 2)
        scale, low = d * scales[j], dmin * minima[j]
        out.append(HALVES_32.pack(*[scale * ((q >> shift & 15) | (h >> j & 1) << 4) - low
                                    for q, h in zip(chunk, high)]))
    return b"".join(out)


def q4_k(b, at):
    return q45_k(b, at, False)


def q5_k(b, at):
    return q45_k(b, at, True)


def q6_k(b, at):
    scales = struct.unpack_from("<16b", b, at + 192)
    d = half(b, at + 208)
    out = []
    for n in range(2):
        low = b[at + 64 * n:at + 64 * n + 64]
        high = b[at + 128 + 32 * n:at + 160 + 32 * n]
        for part in range(4):
            side = low[32 * (part % 2):32 * (part % 2) + 32]
            shift = 4 * (part // 2)
            s = [d * scales[8 * n + 2 * part + k] for k in range(2)]
            out.append(HALVES_32.pack(*[
                s[i // 16] * (((q >> shift & 15) | (h >> 2 * part & 3) << 4) - 32)
                for i, (q, h) in enumerate(zip(side, high))]))
    return b"".join(out)


# type number: (weights a block, bytes a block, one block to halves)
BLOCKS = {2: (32, 18, q4_0), 3: (32, 20, q4_1), 6: (32, 22, q5_0), 7: (32, 24, q5_1),
          8: (32, 34, q8_0), 12: (256, 144, q4_k), 13: (256, 176, q5_k), 14: (256, 210, q6_k)}


def to_halves(b, at, kind, count):
    """The bytes of `count` weights at `at` as F16, piece by piece."""
    if kind == F16:
        yield b[at:at + 2 * count]
    elif kind in (F32, BF16):
        step = 1 << 16
        for i in range(0, count, step):
            n = min(step, count - i)
            if kind == F32:
                values = struct.unpack_from(f"<{n}f", b, at + 4 * i)
            else:
                raw = struct.unpack_from(f"<{n}H", b, at + 2 * i)
                values = struct.unpack(f"<{n}f", struct.pack(f"<{n}I", *[r << 16 for r in raw]))
            yield struct.pack(f"<{n}e", *values)
    else:
        weights, size, convert = BLOCKS[kind]
        for i in range(0, count // weights, 4096):
            blocks = range(i, min(i + 4096, count // weights))
            yield b"".join([convert(b, at + size * k) for k in blocks])


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        values = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return values[0] if len(values) == 1 else values

    def string(self):
        n = self.take("Q")
        self.at += n
        return self.data[self.at - n:self.at]

    def skip(self, kind):
        if kind == STRING:
            self.string()
        elif kind == ARRAY:
            elem, n = self.take("IQ")
            if elem in SCALAR_BYTES:
                self.at += n * SCALAR_BYTES[elem]
            else:
                for _ in range(n):
                    self.skip(elem)
        else:
            self.at += SCALAR_BYTES[kind]


def aligned(n, alignment):
    return -(-n // alignment) * alignment


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: to_f16.py IN.gguf OUT.gguf")
    with open(sys.argv[1], "rb") as f:
        data = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
    r = Reader(data)
    if r.take("4s") != b"GGUF" or r.take("I") not in (2, 3):
        sys.exit(f"{sys.argv[1]}: not a GGUF file of version 2 or 3")
    n_tensors, n_keys = r.take("QQ")
    first_key, alignment, file_type_at = r.at, 32, None
    for _ in range(n_keys):
        name, kind = r.string(), r.take("I")
        if name == b"general.alignment":
            alignment = struct.unpack_from("<I", data, r.at)[0]
        if name == b"general.file_type":
            file_type_at = r.at
        r.skip(kind)
    keys = bytearray(data[first_key:r.at])
    if file_type_at is not None:
        struct.pack_into("<I", keys, file_type_at - first_key, 1)  # mostly F16

    tensors = []
    for _ in range(n_tensors):
        name, n_dims = r.string(), r.take("I")
        dims = [r.take("Q") for _ in range(n_dims)]
        kind, offset = r.take("IQ")
        tensors.append((name, dims, kind, offset))
    base = aligned(r.at, alignment)

    infos, offset, jobs = bytearray(), 0, []
    for name, dims, kind, at in tensors:
        count = 1
        for d in dims:
            count *= d
        convert = len(dims) > 1
        if convert and kind not in (F32, F16, BF16) and kind not in BLOCKS:
            sys.exit(f"{name.decode()}: tensor type {kind} is not known")
        if not convert and kind != F32:
            sys.exit(f"{name.decode()}: a vector of type {kind}")
        size = count * (2 if convert else 4)
        infos += struct.pack("<Q", len(name)) + name + struct.pack("<I", len(dims))
        infos += struct.pack(f"<{len(dims)}Q", *dims)
        infos += struct.pack("<IQ", F16 if convert else F32, offset)
        jobs.append((convert, base + at, kind, count, size))
        offset = aligned(offset + size, alignment)

    with open(sys.argv[2], "wb") as out:
        out.write(struct.pack("<4sIQQ", b"GGUF", 3, n_tensors, n_keys))
        out.write(keys)
        out.write(infos)
        for convert, at, kind, count, size in jobs:
            out.write(bytes(aligned(out.tell(), alignment) - out.tell()))
            if convert:
                for piece in to_halves(data, at, kind, count):
                    out.write(piece)
            else:
                out.write(data[at:at + size])
        out.write(bytes(aligned(out.tell(), alignment) - out.tell()))


if __name__ == "__main__":
    main()
