/* Waits twice as long for one caller as for the other. */
#include <time.h>

__attribute__((noinline)) static void doze(long milliseconds) {
    struct timespec time = {0, milliseconds * 1000000};
    nanosleep(&time, 0);
    __asm__ volatile("");
}

int main(void) {
    for (int round = 0; round < 60; round++) {
        doze(20); /* two thirds */
        doze(10); /* one third */
    }
    return 0;
}
