"""Sums that take time."""


def hot(rounds):
    """Costs twice what steady does."""
    return sum(i * i % 7 for i in range(2 * rounds))  # hot


def steady(rounds):
    """Costs what it costs."""
    return sum(i * i % 5 for i in range(rounds))  # steady
