module example.com/logstats

go 1.26
