// Does a half of its work in an instance of a template and a half where an exception is caught.
// The work is fixed. Usage: throws [ROUNDS]
#include <cstdint>
#include <cstdlib>
#include <stdexcept>

volatile uint64_t sink;

__attribute__((noinline)) static void burn(uint64_t rounds)
{
	uint64_t x = rounds;
	for (uint64_t i = 0; i < rounds; i++)
		x = x * 6364136223846793005u + 1442695040888963407u; // hot
	sink += x;
}

template <typename T, int N> struct Repeat {
	__attribute__((noinline)) static void run(T rounds)
	{
		for (int i = 0; i < N; i++)
			burn(rounds); // template
		sink += N;
	}
};

__attribute__((noinline)) static void thrower(long round)
{
	if (round >= 0)
		throw std::runtime_error("every time");
	sink += 1;
}

int main(int count, char **arguments)
{
	long rounds = count > 1 ? atol(arguments[1]) : 1000;
	for (long round = 0; round < rounds; round++) {
		Repeat<uint64_t, 2>::run(150000);
		try {
			thrower(round);
		} catch (const std::exception &) {
			burn(300000); // handler
		}
	}
}
