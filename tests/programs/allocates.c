/* Allocates 300 MB for one caller, who gives all of it back, and 100 MB for another, who keeps it. Not all
   at once: probes come a moment after the library. */
#include <stdlib.h>
#include <time.h>

/* Compilers leave out memory that nobody looks at. */
static void look(void *memory) { __asm__ volatile("" ::"r"(memory) : "memory"); }

__attribute__((noinline)) static void gives_back(void) {
    void *memory = malloc(3000); /* three quarters */
    look(memory);
    free(memory);
}

__attribute__((noinline)) static void keeps(void) {
    look(malloc(1000)); /* one quarter */
}

int main(void) {
    for (int round = 0; round < 100000; round++) {
        if (round % 1000 == 0) {
            struct timespec time = {0, 5000000};
            nanosleep(&time, 0);
        }
        gives_back();
        keeps();
    }
    return 0;
}
