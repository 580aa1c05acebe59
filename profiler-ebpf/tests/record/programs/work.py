import sys
import time


def inner(n):
    total = 0
    for i in range(n):
        total += i * i % 7  # hot, twice as long
    return total


def outer(n):
    a = inner(2 * n)
    b = sum(
        i * i % 7
        for i in range(n)  # once as long
    )
    return a + b


class Häufig:
    def key(self, item):
        return outer(item % 3 + 200)


def recursive(depth, n):
    if depth:
        return recursive(depth - 1, n)
    return sorted(
        range(40),
        key=Häufig().key,
    )


def main():
    end = time.process_time() + float(sys.argv[1])
    while time.process_time() < end:
        recursive(
            5,
            1,
        )


main()
