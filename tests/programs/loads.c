/* Loads a library while it runs, which then does three quarters of the work.
   The work is fixed. Usage: loads LIBRARY [ROUNDS]. With -DLIBRARY it is the library. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

volatile uint64_t sink;

__attribute__((noinline)) static void burn(uint64_t rounds) {
    uint64_t x = rounds;
    for (uint64_t i = 0; i < rounds; i++)
        x = x * 6364136223846793005u + 1442695040888963407u; /* hot */
    sink += x;
}

#ifdef LIBRARY
void plugin_work(void) {
    burn(300000); /* of the library */
    sink += 1;
}
#else
int main(int count, char **arguments) {
    burn(100000);
    void *library = count > 1 ? dlopen(arguments[1], RTLD_NOW) : 0;
    void (*work)(void) = library ? (void (*)(void))dlsym(library, "plugin_work") : 0;
    if (!work)
        return fprintf(stderr, "%s\n", dlerror()), 1;
    long rounds = count > 2 ? atol(arguments[2]) : 1000;
    for (long round = 0; round < rounds; round++) {
        work(); /* calls the library */
        burn(100000); /* of the program */
    }
    return 0;
}
#endif
