/* Does its work and then dies of it. Usage: dies [ROUNDS] */
#include <stdint.h>
#include <stdlib.h>

volatile uint64_t sink;

__attribute__((noinline)) static void burn(uint64_t rounds) {
    uint64_t x = rounds;
    for (uint64_t i = 0; i < rounds; i++)
        x = x * 6364136223846793005u + 1442695040888963407u; /* hot */
    sink += x;
}

int main(int count, char **arguments) {
    long rounds = count > 1 ? atol(arguments[1]) : 1000;
    for (long round = 0; round < rounds; round++) {
        burn(300000); /* three quarters */
        burn(100000); /* one quarter */
    }
    *(volatile int *)0 = 1;
    return 0;
}
