/* Spends three quarters of its time for one caller and one quarter for the other.
   The work is fixed, so that shares don't depend on what else the machine does.
   Usage: hot [ROUNDS [EXIT_CODE]] */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

volatile uint64_t sink;

__attribute__((noinline)) static void burn(uint64_t rounds) {
    uint64_t x = rounds;
    for (uint64_t i = 0; i < rounds; i++) { /* loop */
        x = x * 6364136223846793005u + 1442695040888963407u; /* hot */
    }
    sink += x;
}

__attribute__((noinline)) static void expensive(void) {
    burn(300000); /* three quarters */
    sink += 1;
}

__attribute__((noinline)) static void cheap(void) {
    burn(100000); /* one quarter */
    sink += 2;
}

int main(int count, char **arguments) {
    long rounds = count > 1 ? atol(arguments[1]) : 1000;
    for (long round = 0; round < rounds; round++) {
        expensive();
        cheap();
    }
    printf("done\n");
    return count > 2 ? atoi(arguments[2]) : 0;
}
