"""Spends its time on one line, and some in native code that another line calls.
Usage: hot.py SECONDS"""
import sys
import time


def burn(rounds):
    x = 1
    for _ in range(rounds):
        x = (x * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF  # hot
    return x


def native(data):
    return sorted(data)  # native


def main():
    end = time.monotonic() + (float(sys.argv[1]) if len(sys.argv) > 1 else 1.0)
    data = [(i * 7919) % 50021 for i in range(50021)]
    while time.monotonic() < end:
        burn(50_000)
        native(data)


main()
