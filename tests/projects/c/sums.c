/* Sums that take time, with a test of their own. */
#include <stdint.h>
#include <stdio.h>

static uint64_t __attribute__((noinline)) hot(uint64_t rounds) {
  uint64_t sum = 1;
  for (uint64_t round = 0; round < 2 * rounds; round++) { sum = (sum ^ round) * 0x9E3779B9u; sum = sum << 7 | sum >> 57; } /* hot */
  return sum;
}

static uint64_t __attribute__((noinline)) steady(uint64_t rounds) {
  uint64_t sum = 3;
  for (uint64_t round = 0; round < rounds; round++) { sum = (sum ^ round) * 0x85EBCA6Bu; sum = sum << 9 | sum >> 55; } /* steady */
  return sum;
}

static int __attribute__((noinline)) test_sums(uint64_t rounds) {
  return hot(rounds) == steady(rounds);
}

int __attribute__((noinline)) test_without_lines(uint64_t rounds) {
  return hot(rounds) == 7;
}

int main(void) {
  volatile uint64_t rounds = 20000000;
  uint64_t set_up = steady(rounds); /* set-up */
  int failed = test_sums(rounds) | test_without_lines(1000);
  printf("%d %d\n", failed, (int)(set_up & 1));
  return failed;
}
