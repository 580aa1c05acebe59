/* Does a third of its work itself, a third in a process that it forks, a third in a program that another one becomes.
   The work is fixed. Usage: family [ROUNDS [-]] */
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

volatile uint64_t sink;

__attribute__((noinline)) static void burn(uint64_t rounds) {
    uint64_t x = rounds;
    for (uint64_t i = 0; i < rounds; i++)
        x = x * 6364136223846793005u + 1442695040888963407u; /* hot */
    sink += x;
}

int main(int count, char **arguments) {
    long rounds = count > 1 ? atol(arguments[1]) : 1000;
    if (count > 2) {
        for (long round = 0; round < rounds; round++)
            burn(300000); /* after exec */
        return 0;
    }
    if (!fork()) {
        for (long round = 0; round < rounds; round++)
            burn(300000); /* after fork */
        return 0;
    }
    if (!fork()) {
        execl("/proc/self/exe", "family", arguments[1], "-", (char *)0);
        return 1;
    }
    for (long round = 0; round < rounds; round++)
        burn(300000); /* itself */
    while (wait(0) > 0) {
    }
    return 0;
}
