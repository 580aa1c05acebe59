/** Code that the virtual machine compiles: Busy SECONDS. */
public class Busy {
	static int fib(int n) {
		return n < 2 ? n : fib(n - 1) + fib(n - 2);
	}

	static int sorted() {
		java.util.List<String> all = new java.util.ArrayList<>();
		for (int i = 0; i < 2000; i++)
			all.add(Integer.toString(i * 7919 % 2003));
		java.util.Collections.sort(all);
		return all.size();
	}

	public static void main(String[] arguments) {
		long end = System.nanoTime() + (long) (Double.parseDouble(arguments[0]) * 1e9);
		long sum = 0;
		while (System.nanoTime() < end)
			sum += fib(20) + sorted();
		System.out.println(sum);
	}
}
