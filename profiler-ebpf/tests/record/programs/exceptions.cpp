// Exceptions, templates and the standard library. One call in 32 throws: for the few instructions in which libgcc puts
// the registers of the handler in place, the stack it stands on is no stack, and no unwinder can read it.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

template <typename T> struct Table {
	std::map<T, std::vector<std::string>> rows;
	__attribute__((noinline)) void add(T key, int n)
	{
		for (int i = 0; i < n; i++)
			rows[key].push_back(std::to_string(key * i % 1009));
		std::sort(rows[key].begin(), rows[key].end());
	}
};

struct Guard {
	int &open;
	explicit Guard(int &o) : open(o) { open++; }
	~Guard() { open--; }
};

static int open_guards;

__attribute__((noinline)) int thrower(int n)
{
	Guard guard(open_guards);
	if (n % 32 == 1)
		throw std::runtime_error(std::to_string(n));
	return n;
}

__attribute__((noinline)) int between(int n)
{
	Guard guard(open_guards);
	return thrower(n) + 1;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1000;
	long sum = 0;
	for (int i = 0; i < rounds; i++) {
		Table<long> table;
		table.add(i, 60);
		for (int k = 0; k < 8; k++) {
			try {
				sum += between(i + k);
			} catch (const std::exception &error) {
				sum += error.what()[0];
			}
		}
	}
	return sum == 42 && open_guards;
}
