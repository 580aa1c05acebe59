"""Tests for pytest and unittest."""
import unittest

from sums import hot, steady

SET_UP = steady(500_000)


def test_sums():
    assert hot(500_000) != steady(500_000)


def test_fails():
    assert hot(1_000) == 7, "it is never seven"


class Sums(unittest.TestCase):
    def test_sums_in_a_class(self):
        self.assertNotEqual(hot(500_000), steady(500_000))


if __name__ == "__main__":
    unittest.main()
