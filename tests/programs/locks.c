/* One thread sleeps 20 ms with a lock, and another waits for that lock as long; fifty times. */
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t is_locked, is_over;

__attribute__((noinline)) static void doze(void) {
    struct timespec time = {0, 20 * 1000000};
    nanosleep(&time, 0); /* sleeps with the lock */
    __asm__ volatile("");
}

static void *other(void *unused) {
    for (int round = 0; round < 50; round++) {
        sem_wait(&is_locked);
        pthread_mutex_lock(&lock); /* waits for the lock */
        pthread_mutex_unlock(&lock);
        sem_post(&is_over);
    }
    return unused;
}

int main(void) {
    pthread_t thread;
    sem_init(&is_locked, 0, 0);
    sem_init(&is_over, 0, 0);
    pthread_create(&thread, 0, other, 0);
    for (int round = 0; round < 50; round++) {
        pthread_mutex_lock(&lock);
        sem_post(&is_locked);
        doze();
        pthread_mutex_unlock(&lock);
        sem_wait(&is_over);
    }
    pthread_join(thread, 0);
    return 0;
}
