/* SPDX-License-Identifier: MIT
 *
 * What this machine reads and multiplies at most, without a line of chinwag's code, so that its
 * `bench` can be held against it (check_limits.sh). Prints, in units of 10^9 a second: read_gbs,
 * the best of ten plain sums over BYTES; int8_gops, multiply-adds of bytes in registers, eight
 * chains a thread, by the instructions that the compiler was allowed.
 *
 *     gcc -O3 -march=native -fopenmp limits.c -o limits && ./limits BYTES THREADS */
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined __AVX512VNNI__
typedef uint32_t vec __attribute__((vector_size(64)));
#define STEP(a) __asm__ volatile("vpdpbusd %2, %1, %0" : "+v"(a) : "v"(w), "v"(x))
#elif defined __AVXVNNI__
typedef uint32_t vec __attribute__((vector_size(32)));
#define STEP(a) __asm__ volatile("%{vex%} vpdpbusd %2, %1, %0" : "+x"(a) : "x"(w), "x"(x))
#else
typedef uint32_t vec __attribute__((vector_size(32)));
#define STEP(a)                                                                                    \
    __asm__ volatile("vpmaddubsw %2, %1, %%ymm15\n vpmaddwd %3, %%ymm15, %%ymm15\n"                \
                     "vpaddd %%ymm15, %0, %0"                                                      \
                     : "+x"(a)                                                                     \
                     : "x"(w), "x"(x), "x"(ones)                                                   \
                     : "xmm15")
#endif

enum { ROUNDS = 1 << 21 };

int main(int argc, char **argv) {
    size_t n = argc > 2 ? strtoull(argv[1], NULL, 10) / 4 : 0;
    int threads = argc > 2 ? atoi(argv[2]) : 0;
    uint32_t *data = malloc(4 * n), sum = 0;
    double read = 0, peak = 0;
    if (!data || n == 0 || threads < 1) {
        return fprintf(stderr, "usage: limits BYTES THREADS\n"), 2;
    }
    memset(data, 1, 4 * n);
    for (int run = 0; run < 10; run++) {
        double begin = omp_get_wtime();
#pragma omp parallel for num_threads(threads) reduction(+ : sum)
        for (size_t i = 0; i < n; i++) {
            sum += data[i];
        }
        double speed = 4e-9 * (double)n / (omp_get_wtime() - begin);
        read = speed > read ? speed : read;
    }
    for (int run = 0; run < 10; run++) {
        double begin = omp_get_wtime();
#pragma omp parallel num_threads(threads) reduction(+ : sum)
        {
            vec w = (vec){0} + 0x01020304, x = w + 1, ones = (vec){0} + 0x00010001;
            vec a = w, b = w, c = w, d = w, e = w, f = w, g = w, h = w;
            for (int i = 0; i < ROUNDS; i++) {
                STEP(a);
                STEP(b);
                STEP(c);
                STEP(d);
                STEP(e);
                STEP(f);
                STEP(g);
                STEP(h);
            }
            sum += (a + b + c + d + e + f + g + h + ones)[0];
        }
        double speed = 8e-9 * ROUNDS * sizeof(vec) * threads / (omp_get_wtime() - begin);
        peak = speed > peak ? speed : peak;
    }
    printf("{\"read_gbs\": %.2f, \"int8_gops\": %.1f, \"sum\": %u}\n", read, peak, sum);
    return 0;
}
