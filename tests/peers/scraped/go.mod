module perflens.invalid/peers/scraped

go 1.24
