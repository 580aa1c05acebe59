module example.com/sums

go 1.19
