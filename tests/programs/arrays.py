"""Lets numpy work for two of its lines and works itself on a third; prints the processor time of each.
Usage: arrays.py SECONDS"""
import sys
import time

import numpy

took = {"sort": 0.0, "product": 0.0, "own": 0.0}


def measured(name, work):
    start = time.thread_time()
    work()
    took[name] += time.thread_time() - start


def own():
    x = 1
    for _ in range(40_000):
        x = (x * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF  # own
    return x


def main():
    values = numpy.random.default_rng(7).random(200_000)
    left = numpy.random.default_rng(8).random((90, 90))
    end = time.monotonic() + float(sys.argv[1])
    while time.monotonic() < end:
        measured("sort", lambda: numpy.sort(values))  # sort
        measured("product", lambda: [numpy.dot(left, left) for _ in range(60)])  # product
        measured("own", own)
    total = sum(took.values())
    print(" ".join(f"{name}={100 * seconds / total:.2f}" for name, seconds in took.items()))


main()
