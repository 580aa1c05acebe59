/* Spends its time in two small functions that compilers inline, at addresses that are those of the file when it is
   linked with -no-pie.
   Usage: inlined ROUNDS */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static inline uint64_t mix(uint64_t x) {
    for (int step = 0; step < 8; step++)
        x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdu; /* mixes */
    return x;
}

static inline uint64_t divide(uint64_t x) {
    return 0x9e3779b97f4a7c15u / (x | 1); /* divides */
}

int main(int count, char **arguments) {
    long rounds = count > 1 ? atol(arguments[1]) : 1000;
    uint64_t sum = 0;
    for (long round = 0; round < rounds; round++)
        sum += divide(mix(sum + round)); /* calls */
    printf("%d\n", (int)(sum & 1));
    return 0;
}
