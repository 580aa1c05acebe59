/** Does three quarters of its work for one caller and one quarter for the other. Usage: Hot [ROUNDS] */
public class Hot {
	static long sink;

	static long burn(int rounds) {
		long x = rounds;
		for (int i = 0; i < rounds; i++)
			x = x * 6364136223846793005L + 1442695040888963407L;
		return x;
	}

	static void expensive() {
		sink += burn(300_000);
	}

	static void cheap() {
		sink += burn(100_000);
	}

	public static void main(String[] arguments) {
		int rounds = arguments.length > 0 ? Integer.parseInt(arguments[0]) : 1000;
		for (int round = 0; round < rounds; round++) {
			expensive();
			cheap();
		}
	}
}
